#include "proxy/dispatcher.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

using ::testing::ElementsAre;

class DispatcherTest : public ::testing::Test {
 protected:
  static Config config_of(std::uint32_t depth) {
    Config config;
    config.scheduler.depth.requests = depth;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {.weight = 2}},
                          {.name = "b", .share = {}},
                          {.name = "job-{jobid}", .share = {}}};
    config.idle = std::chrono::seconds(60);
    return config;
  }
  void make(std::uint32_t depth, std::size_t workers = 1) { make(config_of(depth), workers); }
  void make(const Config& config, std::size_t workers) {
    dispatcher_ = std::make_unique<Dispatcher>(
        std::make_shared<const WorkerSettings>(config), workers,
        [this](std::size_t worker) { woken_.push_back(worker); }, now_);
  }

  PendingIo& io(std::uint32_t app, std::size_t worker = 0) {
    ios_.push_back(std::make_unique<PendingIo>());
    PendingIo& made = *ios_.back();
    made.app = AppId{app};
    made.size = {1000};
    made.cost = 1000;
    made.worker = worker;
    return made;
  }

  std::vector<PendingIo*> turn(const Turn& what, std::size_t worker = 0) {
    std::vector<PendingIo*> released;
    next_ = dispatcher_->turn(worker, what, now_, released);
    return released;
  }
  stage::VirtualPfsId job(const std::string& name) {
    return dispatcher_->find({.virtual_pfs = name, .declared_name = "job-{jobid}"}, now_).id;
  }
  bool is_there(stage::VirtualPfsId id) {
    bool is = false;
    dispatcher_->inspect(
        now_, [&](stage::Stage& stage, TimePoint) { is = stage.virtual_pfs().is_there(id); });
    return is;
  }

  TimePoint now_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::unique_ptr<PendingIo>> ios_;
  std::vector<std::size_t> woken_;
  Dispatcher::Next next_;
};

TEST_F(DispatcherTest, WhatBelongsToAnotherWorkerWaitsInItsInbox) {
  make(4, 2);
  PendingIo& mine = io(1, 0);
  PendingIo& yours = io(1, 1);
  EXPECT_EQ(turn({.arrived = {&mine, &yours}}), (std::vector<PendingIo*>{&mine}));
  EXPECT_EQ(woken_, (std::vector<std::size_t>{1}));
  EXPECT_EQ(yours.state, PendingIo::State::released);
  EXPECT_EQ(turn({}, 1), (std::vector<PendingIo*>{&yours}));
  EXPECT_EQ(yours.state, PendingIo::State::outstanding);
}

TEST_F(DispatcherTest, AbandonTakesARequestOutOfTheInbox) {
  make(1, 2);
  PendingIo& outstanding = io(1);
  PendingIo& queued = io(2);
  PendingIo& waiting = io(1, 1);
  ASSERT_EQ(turn({.arrived = {&outstanding, &queued, &waiting}}).size(), 1U);
  dispatcher_->abandon({&queued}, now_);
  EXPECT_EQ(dispatcher_->queued(), 1U);
  dispatcher_->abandon({&outstanding}, now_);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_TRUE(turn({}).empty());  // lets `waiting` go, into the inbox of worker 1
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
  dispatcher_->abandon({&waiting}, now_);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_TRUE(turn({}, 1).empty());
}

TEST_F(DispatcherTest, TakeBackFailsOnceTheRequestIsReleased) {
  make(1);
  PendingIo& first = io(1);
  PendingIo& second = io(1);
  (void)turn({.arrived = {&first, &second}});
  EXPECT_THAT(dispatcher_->take_back({&first, &second}, now_), ElementsAre(&second));
  EXPECT_THAT(dispatcher_->take_back({&second}, now_), ElementsAre(&second))
      << "it is held by its session alone now";
  EXPECT_EQ(dispatcher_->queued(), 0U);
}

TEST_F(DispatcherTest, ATurnGivesSlotsUpBeforeRequestsEndAndOthersGo) {
  make(2);
  PendingIo& first = io(1);
  PendingIo& second = io(1);
  PendingIo& third = io(1);
  PendingIo& fourth = io(1);
  (void)turn({.arrived = {&first, &second, &third, &fourth}});
  ASSERT_EQ(dispatcher_->outstanding(), 2U);
  EXPECT_EQ(turn({.gave_slots_up = {&first, &second},
                  .abandoned = {&second},
                  .ended = {{.io = &first, .bytes = 1000, .failed = false}}}),
            (std::vector<PendingIo*>{&third, &fourth}));
  EXPECT_EQ(next_.slots_given_up, 2U);
  EXPECT_EQ(turn({.gave_slots_up = {&third, &third}}).size(), 0U);
  EXPECT_EQ(next_.slots_given_up, 1U) << "it had one slot";
}

TEST_F(DispatcherTest, EachWorkerGetsOtherSettingsOnce) {
  make(1, 2);
  (void)turn({}, 0);
  EXPECT_EQ(next_.settings, nullptr);
  const WorkerSettingsPtr before = dispatcher_->settings();
  dispatcher_->reconfigure(config_of(3), now_);
  EXPECT_EQ(woken_, (std::vector<std::size_t>{0, 1}));
  for (const std::size_t worker : {0U, 1U}) {
    (void)turn({}, worker);
    EXPECT_NE(next_.settings, before);
    EXPECT_EQ(next_.settings, dispatcher_->settings());
    (void)turn({.epoch = next_.epoch}, worker);
    EXPECT_EQ(next_.settings, nullptr);
  }
}

TEST_F(DispatcherTest, BooksBalanceAfterEverything) {
  make(3);
  for (int round = 0; round < 100; ++round) {
    Turn arrivals;
    for (std::uint32_t i = 0; i < 7; ++i) arrivals.arrived.push_back(&io(1 + i % 2));
    std::vector<PendingIo*> out = turn(arrivals);
    while (!out.empty()) {
      Turn ends;
      for (PendingIo* each : out) {
        ends.ended.push_back({.io = each, .bytes = 400, .failed = round % 3 == 0});
      }
      out = turn(ends);
    }
  }
  EXPECT_EQ(dispatcher_->outstanding() + dispatcher_->queued(), 0U);
  std::vector<stage::CounterRow> rows;
  dispatcher_->copy_counters(now_, rows);
  std::uint64_t done = 0;
  for (const stage::CounterRow& row : rows) {
    EXPECT_EQ(row.counters.queued.bytes + row.counters.outstanding.bytes, 0U);
    done += row.counters.done.all().requests;
  }
  EXPECT_EQ(done, 700U);
}

TEST_F(DispatcherTest, AReloadWakesAWorkerWhichLetsGoWhatMay) {
  make(1);
  PendingIo& first = io(1);
  PendingIo& second = io(2);
  ASSERT_EQ(turn({.arrived = {&first, &second}}).size(), 1U);
  Config next = config_of(2);
  next.policy = "fifo";
  dispatcher_->reconfigure(next, now_);
  EXPECT_EQ(woken_, (std::vector<std::size_t>{0}));
  EXPECT_EQ(turn({}), (std::vector<PendingIo*>{&second}));
}

TEST_F(DispatcherTest, WhatAClientHasTooManyOfComesBackToItsWorkerToBeRefused) {
  Config config = config_of(1);
  config.client_limits.most = 4;
  make(config, 2);
  stage::ClientId client{};
  for (int i = 0; i < 6; ++i) client = dispatcher_->join_client("node");
  std::vector<PendingIo*> all = {&io(2)};
  for (int i = 0; i < 6; ++i) all.push_back(&io(1, 1));
  for (PendingIo* each : all) each->client = client;
  EXPECT_EQ(turn({.arrived = all}), (std::vector<PendingIo*>{all[0]}));
  EXPECT_EQ(woken_, (std::vector<std::size_t>{1}));
  const std::vector<PendingIo*> excess = turn({}, 1);
  EXPECT_EQ(excess, (std::vector<PendingIo*>{all[6], all[5]}));
  for (PendingIo* each : excess) EXPECT_EQ(each->state, PendingIo::State::excess);
  EXPECT_EQ(dispatcher_->queued(), 4U);
}

TEST_F(DispatcherTest, BypassWakesAllWorkersWhichForwardWhatTheyHold) {
  make(1, 3);
  PendingIo& first = io(1, 0);
  PendingIo& second = io(2, 1);
  PendingIo& third = io(1, 2);
  ASSERT_EQ(turn({.arrived = {&first, &second, &third}}).size(), 1U);
  EXPECT_FALSE(dispatcher_->bypassed());
  dispatcher_->bypass(true, now_);
  EXPECT_TRUE(dispatcher_->bypassed());
  EXPECT_THAT(woken_, ElementsAre(0, 1, 2));
  EXPECT_EQ(turn({}, 1), (std::vector<PendingIo*>{&second}));
  EXPECT_EQ(turn({}, 2), (std::vector<PendingIo*>{&third}));
  PendingIo& late = io(1, 0);
  EXPECT_EQ(turn({.arrived = {&late}}), (std::vector<PendingIo*>{&late}));
  EXPECT_EQ(dispatcher_->outstanding(), 4U);
  dispatcher_->bypass(false, now_);
  EXPECT_FALSE(dispatcher_->bypassed());
  PendingIo& next = io(1, 0);
  EXPECT_TRUE(turn({.arrived = {&next}}).empty()) << "the first one has the slot";
  Turn ends;
  for (PendingIo* each : {&first, &second, &third, &late}) {
    ends.ended.push_back({.io = each, .bytes = 1000, .failed = false});
  }
  EXPECT_EQ(turn(ends), (std::vector<PendingIo*>{&next}));
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
}

TEST_F(DispatcherTest, AnExemptRequestOfAnotherWorkerCanBeAbandonedInItsInbox) {
  make(1, 2);
  PendingIo& busy = io(1);
  PendingIo& root = io(1, 1);
  root.exempt = true;
  ASSERT_EQ(turn({.arrived = {&busy, &root}}).size(), 1U);
  EXPECT_EQ(root.state, PendingIo::State::released);
  dispatcher_->abandon({&root}, now_);
  EXPECT_TRUE(turn({}, 1).empty());
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
}

// The worker that is woken learns when the lease ends, and ends it by itself.
TEST_F(DispatcherTest, ALeaseEndsByTheTurnsOfTheWorkersAlone) {
  make(100, 2);
  dispatcher_->set_hold(std::chrono::hours(1), now_);
  std::vector<stage::Allocation> all;
  for (std::uint32_t app = 1; app < 3; ++app) {
    all.push_back({.id = {.app = AppId{app}}, .limits = {.operations = 0}});
  }
  all.push_back({.id = {.app = AppId{9}}, .limits = {}});
  const stage::Cycle cycle = {.epoch = {.term = 1, .sequence = 1},
                              .lease = std::chrono::milliseconds(100)};
  const stage::CycleAnswer answer = dispatcher_->allocate(cycle, all, now_);
  EXPECT_EQ(answer.result, stage::CycleResult::applied);
  EXPECT_THAT(answer.unknown, ElementsAre(all[2].id));
  EXPECT_THAT(woken_, ElementsAre(0));
  EXPECT_TRUE(turn({}).empty());
  EXPECT_EQ(next_.until, now_ + std::chrono::milliseconds(100));
  PendingIo& mine = io(1);
  PendingIo& yours = io(2, 1);
  EXPECT_TRUE(turn({.arrived = {&yours}}, 1).empty());
  now_ += std::chrono::milliseconds(99);
  EXPECT_TRUE(turn({.arrived = {&mine}}).empty());
  EXPECT_EQ(next_.until, now_ + std::chrono::milliseconds(1));
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(turn({}), (std::vector<PendingIo*>{&mine}));
  EXPECT_THAT(woken_, ElementsAre(0, 1));
  EXPECT_EQ(turn({}, 1), (std::vector<PendingIo*>{&yours}));
  EXPECT_FALSE(next_.until);
  EXPECT_EQ(dispatcher_->allocate(cycle, all, now_).result, stage::CycleResult::outdated);
  EXPECT_THAT(woken_, ElementsAre(0, 1)) << "nothing has changed";
}

TEST_F(DispatcherTest, ACompleteCycleInPartsLeavesOnlyItsOwnLimits) {
  Config config = config_of(4);
  config.most_virtual_pfs = 1000;
  make(config, 1);
  std::vector<stage::Allocation> all;
  for (int i = 0; i < 700; ++i) {
    all.push_back({.id = job("job-" + std::to_string(i)), .limits = {.operations = 1}});
  }
  const auto limited = [&] {
    std::size_t count = 0;
    dispatcher_->inspect(now_, [&](stage::Stage& stage, TimePoint) {
      count = stage.allocations().limited().size();
    });
    return count;
  };
  stage::Cycle cycle = {.epoch = {.term = 1}, .lease = std::chrono::seconds(1), .complete = true};
  (void)dispatcher_->allocate(cycle, all, now_);
  EXPECT_EQ(limited(), 700U);
  ++cycle.epoch.sequence;
  (void)dispatcher_->allocate(cycle, std::span(all).subspan(300, 150), now_);
  EXPECT_EQ(limited(), 150U);
  ++cycle.epoch.sequence;
  (void)dispatcher_->allocate(cycle, {}, now_);
  EXPECT_EQ(limited(), 0U);
}

TEST_F(DispatcherTest, NoNumberIsFreeBeforeAllWorkersHaveForgottenIt) {
  make(1, 2);
  const stage::VirtualPfsId idle = job("job-1");
  now_ += std::chrono::seconds(61);
  dispatcher_->retire_idle(now_);
  EXPECT_THAT(woken_, ElementsAre(0, 1));
  (void)turn({}, 0);
  const std::uint64_t epoch = next_.epoch;
  EXPECT_EQ(epoch, 1U);
  (void)turn({.epoch = epoch}, 0);
  dispatcher_->retire_idle(now_);
  EXPECT_TRUE(is_there(idle)) << "worker 1 may use it yet";
  (void)turn({.epoch = epoch}, 1);
  dispatcher_->retire_idle(now_);
  EXPECT_FALSE(is_there(idle));
  EXPECT_EQ(job("job-2").app, idle.app);
}

TEST_F(DispatcherTest, AWorkerThatUsesANumberWithItsLastTurnBeforeItForgetsItKeepsIt) {
  make(1);
  const stage::VirtualPfsId idle = job("job-1");
  now_ += std::chrono::seconds(61);
  dispatcher_->retire_idle(now_);
  PendingIo& late = io(static_cast<std::uint32_t>(idle.app));
  late.generation = idle.generation;
  EXPECT_EQ(turn({.parked = {{.io = &late, .whose = stage::SlowClient::none}}}).size(), 0U);
  (void)turn({.epoch = next_.epoch});
  dispatcher_->retire_idle(now_);
  EXPECT_TRUE(is_there(idle));
  dispatcher_->abandon({&late}, now_);
}

}  // namespace
}  // namespace vpfs::proxy
