// A whole stage in virtual time, without a socket.
#include "stage/stage.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/policies/edf.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kSize = 1000;

// Does what a proxy or a mount does around a stage, with a clock that does not move between two
// calls.
class StageTest : public ::testing::Test {
 protected:
  static Config config_of(std::uint32_t depth) {
    Config config;
    config.policy = "sfq";
    config.scheduler.depth.requests = depth;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {.weight = 2}}, {.name = "b", .share = {}}};
    return config;
  }
  void make(const Config& config) { stage_ = std::make_unique<Stage>(config, now_); }

  VirtualPfsId named(const std::string& name, const std::string& declared = "") {
    return stage_
        ->find({.virtual_pfs = name, .declared_name = declared.empty() ? name : declared}, now_)
        .id;
  }
  Held& request(VirtualPfsId whose, IoKind kind = IoKind::read) {
    Held& io = requests_.emplace_back();
    io.app = whose.app;
    io.generation = whose.generation;
    io.kind = kind;
    io.size = io.asked = {kSize};
    io.cost = kSize;
    io.arrival = now_;
    return io;
  }
  Held& arrive(VirtualPfsId whose, IoKind kind = IoKind::read) {
    Held& io = request(whose, kind);
    stage_->arrive(io, now_);
    return io;
  }
  // Takes over and returns the requests released now.
  std::vector<Held*> let_go() {
    std::vector<Held*> released;
    until_ = stage_->release(now_, released);
    for (Held* io : released) Stage::took_over(*io);
    return released;
  }
  void end(Held& io) { stage_->end(io, {.moved = {kSize}}, now_); }
  const Counters& counters(VirtualPfsId id) const { return stage_->virtual_pfs().counters(id.app); }
  HoldTimes held(VirtualPfsId id) const {
    std::vector<CounterRow> rows(stage_->rows());
    EXPECT_EQ(stage_->copy_counters(0, rows, now_), rows.size());
    return rows[std::to_underlying(id.app)].counters.held;
  }
  // All callers have forgotten the numbers from before.
  void retire_idle() {
    stage_->find_idle(stage_->rows(), now_);
    while (stage_->has_idle()) stage_->retire(1, now_);
  }

  TimePoint now_ = TimePoint(100s);
  TimePoint until_ = kNever;
  std::deque<Held> requests_;  // none is ever moved
  std::unique_ptr<Stage> stage_;
};

TEST_F(StageTest, ReleasesUpToTheDepthAndTheRestAsOthersEnd) {
  make(config_of(2));
  const VirtualPfsId a = named("a");
  Held& first = arrive(a);
  Held& second = arrive(a);
  Held& third = arrive(a);
  EXPECT_THAT(let_go(), ElementsAre(&first, &second));
  EXPECT_THAT(let_go(), IsEmpty());
  end(first);
  EXPECT_THAT(let_go(), ElementsAre(&third));
  EXPECT_EQ(stage_->outstanding(), 2U);
}

TEST_F(StageTest, RulesSayWhoseARequestIs) {
  Config config = config_of(4);
  config.virtual_pfs.push_back({.name = "job-{jobid}", .share = {.weight = 3}});
  config.rules = {{.any_of = {{.clients = {"10.0.0.0/8"}, .hints = {{"jobid", {"*"}}}}},
                   .virtual_pfs = "job-{jobid}"},
                  {.any_of = {{.uids = {1001}}}, .virtual_pfs = "b"}};
  make(config);
  const Classifier classifier(config.rules);
  const auto whose = [&](const std::string& client, std::optional<std::uint32_t> uid,
                         std::optional<std::string_view> job) {
    const auto match = classifier.classify(Address::parse(client).value(),
                                           {.uid = uid, .hints = std::span(&job, 1)});
    return stage_->virtual_pfs()[stage_->find(match, now_).id.app].info->name;
  };
  EXPECT_EQ(whose("10.1.2.3", 1001, "7"), "job-7");
  EXPECT_EQ(whose("11.1.2.3", 1001, "7"), "b");
  EXPECT_EQ(whose("11.1.2.3", 5, std::nullopt), "default");
}

TEST_F(StageTest, CountsWhatArrivesIsSentDoneFailsAndIsRefusedByKind) {
  make(config_of(1));
  const VirtualPfsId a = named("a");
  Held& read = arrive(a);
  Held& write = arrive(a, IoKind::write);
  Held& late = arrive(a, IoKind::write);
  ASSERT_THAT(let_go(), ElementsAre(&read));
  EXPECT_EQ(counters(a).queued.requests, 2U);
  EXPECT_EQ(counters(a).outstanding.bytes, kSize);
  stage_->end(read, {.moved = {400}}, now_);
  ASSERT_THAT(let_go(), ElementsAre(&write));
  stage_->end(write, {.moved = {0}, .failed = true}, now_);
  ASSERT_THAT(let_go(), ElementsAre(&late));
  stage_->end(late, {.moved = {}, .failed = false, .refused = true}, now_);
  stage_->count_refused({.id = a}, IoKind::metadata, {}, now_);

  const Counters& seen = counters(a);
  EXPECT_EQ(seen.arrived.of(IoKind::write).requests, 2U);
  EXPECT_EQ(seen.arrived.of(IoKind::metadata).requests, 1U);
  EXPECT_EQ(seen.sent.of(IoKind::read).bytes, kSize);
  EXPECT_EQ(seen.done.of(IoKind::read).bytes, 400U);
  EXPECT_EQ(seen.done.of(IoKind::write).requests, 1U);
  EXPECT_EQ(seen.failed.of(IoKind::write).requests, 1U);
  EXPECT_EQ(seen.refused.of(IoKind::write).requests, 1U);
  EXPECT_EQ(seen.refused.of(IoKind::metadata).requests, 1U);
  EXPECT_EQ(seen.cost_sent, 3 * kSize);
  EXPECT_EQ(seen.cost_done, 400U + 1 + 1) << "no request costs less than one";
  EXPECT_EQ(seen.queued.requests + seen.outstanding.requests, 0U);
}

TEST_F(StageTest, TellsForHowLongHeadsWereHeldByReason) {
  Config config = config_of(1);
  config.virtual_pfs = {{.name = "limited", .share = {.rate = {kSize}, .burst = {kSize}}},
                        {.name = "b", .share = {}}};
  make(config);
  const VirtualPfsId limited = named("limited");
  const VirtualPfsId b = named("b");
  Held& first = arrive(limited);
  Held& second = arrive(limited);
  ASSERT_THAT(let_go(), ElementsAre(&first));
  now_ += 300ms;
  end(first);
  EXPECT_THAT(let_go(), IsEmpty());
  EXPECT_EQ(until_, now_ + 700ms);
  Held& third = arrive(b);
  ASSERT_THAT(let_go(), ElementsAre(&third));
  now_ += 1200ms;
  EXPECT_EQ(held(limited).limit, 1s);
  EXPECT_EQ(held(limited).depth, 500ms);
  end(third);
  ASSERT_THAT(let_go(), ElementsAre(&second));
  now_ += 1s;
  EXPECT_EQ(held(limited).sum(), 1500ms) << "nothing waits any more";

  // Another scheduler takes over, and the counts stay.
  config.policy = "fifo";
  config.virtual_pfs = {{.name = "limited", .share = {}}, {.name = "b", .share = {}}};
  stage_->reconfigure(config, now_);
  EXPECT_EQ(held(limited).limit, 1s);
  end(second);
}

TEST_F(StageTest, AReloadMovesWhatWaitsInTheOrderOfArrival) {
  make(config_of(2));
  const VirtualPfsId a = named("a");
  const VirtualPfsId b = named("b");
  Held& first = arrive(a);
  Held& second = arrive(b);
  ASSERT_EQ(let_go().size(), 2U);
  std::vector<Held*> waiting;
  for (int i = 0; i < 6; ++i) {
    now_ += 1s;
    waiting.push_back(&arrive(i % 2 == 0 ? a : b));
  }
  Config next = config_of(3);
  next.policy = "fifo";
  next.virtual_pfs = {{.name = "a", .share = {.weight = 7}}, {.name = "c", .share = {}}};
  stage_->reconfigure(next, now_);
  EXPECT_EQ(stage_->queued(), 6U);
  EXPECT_EQ(stage_->outstanding(), 2U);
  std::vector<Held*> order = let_go();
  EXPECT_EQ(order.size(), 1U) << "two that the scheduler before sent are outstanding";
  end(first);
  end(second);
  while (order.size() < waiting.size()) {
    for (Held* io : let_go()) order.push_back(io);
    end(*order[order.size() - 1]);
    if (order.size() >= 2 && order[order.size() - 2]->state == Held::State::outstanding) {
      end(*order[order.size() - 2]);
    }
  }
  EXPECT_EQ(order, waiting);
  EXPECT_EQ(stage_->virtual_pfs()[a.app].info->share().weight, 7U);
  EXPECT_TRUE(stage_->virtual_pfs()[b.app].info->removed);
  EXPECT_EQ(counters(b).done.all().requests, 4U);
}

TEST_F(StageTest, AReloadToFewerTrafficClassesKnowsWhatIsOutstandingOfTheOthers) {
  Config config = config_of(4);
  config.scheduler.classes = {.mode = TrafficClasses::Mode::strict,
                              .classes = {{.name = "x"}, {.name = "y"}, {.name = "z"}}};
  make(config);
  Held& io = request(named("a"));
  io.traffic_class = 2;
  stage_->arrive(io, now_);
  ASSERT_EQ(let_go().size(), 1U);
  config.scheduler.classes.classes.pop_back();
  stage_->reconfigure(config, now_);
  stage_->end(io, {.moved = {100 * kSize}}, now_);
  EXPECT_EQ(stage_->outstanding(), 0U);
  EXPECT_EQ(counters(named("a")).cost_done, 100 * kSize);
}

TEST_F(StageTest, APromiseThatAReloadMakesGoodIsNoLongerToldAsRefused) {
  Config config = config_of(4);
  config.policy = "edf";
  config.scheduler.own.of<EdfSettings>().capacity = 10;
  config.virtual_pfs = {
      {.name = "a", .share = {.rate = {100 * kMiB}, .burst = {kMiB}, .latency = 1s}}};
  make(config);
  const auto refused = [&] {
    const auto& why = stage_->virtual_pfs()[named("a").app].info->refused_promise;
    return why == nullptr ? std::string() : *why;
  };
  EXPECT_NE(refused(), "");
  EXPECT_EQ(stage_->take_notices().size(), 1U);
  config.scheduler.own.of<EdfSettings>().capacity = kGiB;
  stage_->reconfigure(config, now_);
  EXPECT_EQ(refused(), "");
}

TEST_F(StageTest, WhatAClientHasTooManyOfIsGivenBackToBeRefused) {
  Config config = config_of(1);
  config.client_limits.most = 4;
  make(config);
  ClientId client{};
  for (int i = 0; i < 6; ++i) client = stage_->join_client("node");
  std::vector<Held*> all;
  for (int i = 0; i < 7; ++i) {
    all.push_back(&request(named(i == 0 ? "b" : "a")));
    all.back()->client = client;
    stage_->arrive(*all.back(), now_);
  }
  EXPECT_THAT(let_go(), ElementsAre(all[0], all[6], all[5]));
  EXPECT_EQ(all[6]->state, Held::State::excess);
  EXPECT_EQ(counters(named("a")).excess, 2U);
  EXPECT_EQ(stage_->queued(), 4U);
  EXPECT_EQ(stage_->take_notices().size(), 1U);
  EXPECT_THAT(stage_->take_notices(), IsEmpty()) << "each is told once";
}

TEST_F(StageTest, WhatIsHeldUpToItsDeadlineIsRefusedUnlessItWasLetGo) {
  make(config_of(1));
  const VirtualPfsId a = named("a");
  Held& first = arrive(a);
  Held& second = arrive(a);
  ASSERT_EQ(let_go().size(), 1U);
  now_ += 240s;
  EXPECT_FALSE(stage_->refuse(first, now_));
  EXPECT_TRUE(stage_->refuse(second, now_));
  EXPECT_EQ(counters(a).refused.of(IoKind::read).requests, 1U);
  EXPECT_EQ(stage_->queued(), 0U);
  EXPECT_EQ(stage_->virtual_pfs()[a.app].requests, 1U);
}

TEST_F(StageTest, ASlotThatWasGivenUpIsNotFreedTwice) {
  make(config_of(1));
  Held& slow = arrive(named("a"));
  Held& next = arrive(named("b"));
  ASSERT_THAT(let_go(), ElementsAre(&slow));
  EXPECT_TRUE(stage_->give_up_slot(slow, now_));
  EXPECT_FALSE(stage_->give_up_slot(slow, now_));
  EXPECT_THAT(let_go(), ElementsAre(&next));
  end(slow);
  EXPECT_EQ(stage_->outstanding(), 1U);
  EXPECT_EQ(counters(named("a")).done.all().bytes, kSize);
  EXPECT_EQ(counters(named("a")).outstanding.bytes, 0U);
  EXPECT_EQ(counters(named("a")).cost_done, kSize) << "charged once";
}

TEST_F(StageTest, AbandonFreesWhatARequestHasInEveryState) {
  make(config_of(2));
  const VirtualPfsId a = named("a");
  Held& parked = request(a);
  stage_->park(parked, SlowClient::none, now_);
  Held& outstanding = arrive(a);
  ASSERT_THAT(let_go(), ElementsAre(&outstanding));
  Held& released = arrive(a);
  std::vector<Held*> out;
  (void)stage_->release(now_, out);  // and not taken over
  ASSERT_THAT(out, ElementsAre(&released));
  Held& queued = arrive(a);
  EXPECT_EQ(stage_->virtual_pfs()[a.app].requests, 4U);
  for (Held* io : {&parked, &outstanding, &released, &queued}) stage_->abandon(*io, now_);
  EXPECT_EQ(stage_->virtual_pfs()[a.app].requests, 0U);
  EXPECT_EQ(stage_->outstanding() + stage_->queued(), 0U);
  EXPECT_EQ(counters(a).queued.bytes + counters(a).outstanding.bytes, 0U);
}

TEST_F(StageTest, EachTargetHasADepthOfItsOwn) {
  Config config = config_of(1);
  config.scheduler_per_target = true;
  make(config);
  Held& first = arrive(named("a"));
  Held& second = arrive(named("a"));
  Held& elsewhere = request(named("b"));
  elsewhere.device = 102;
  stage_->arrive(elsewhere, now_);
  EXPECT_THAT(let_go(), ElementsAre(&first, &elsewhere));
  ASSERT_EQ(stage_->lanes().size(), 2U);
  EXPECT_EQ(stage_->lanes()[1].target, 102U);
  config.policy = "fifo";
  stage_->reconfigure(config, now_);
  EXPECT_EQ(stage_->queued(), 1U);
  end(elsewhere);
  EXPECT_THAT(let_go(), IsEmpty());
  end(first);
  EXPECT_THAT(let_go(), ElementsAre(&second));
}

// Eight requests for each of three targets, of a virtual PFS that may have four in a second.
TEST_F(StageTest, ACapCountsForAllTargetsTogether) {
  Config config = config_of(100);
  config.scheduler_per_target = true;
  config.policy = "tbf";
  config.virtual_pfs = {{.name = "a", .share = {.rate = {4 * kSize}, .burst = {kSize}}}};
  make(config);
  for (std::uint32_t i = 0; i < 24; ++i) {
    Held& io = request(named("a"));
    io.device = i % 3;
    stage_->arrive(io, now_);
  }
  std::vector<std::size_t> each(3);
  std::size_t sent = 0;
  for (Duration passed = {}; passed <= 3s; passed += 10ms, now_ += 10ms) {
    for (const Held* io : let_go()) {
      ++each[io->device];
      ++sent;
    }
    EXPECT_LE(sent, 1 + 4 * passed / 1s + 1);
  }
  EXPECT_EQ(sent, 13U);
  EXPECT_THAT(each, ::testing::Each(::testing::Ge(4U))) << "no target is left out";
}

// Two targets with two traffic classes each: b gets in total what a had elsewhere.
TEST_F(StageTest, ServiceElsewhereCountsOnceOverLanesAndClasses) {
  for (const bool with_classes : {false, true}) {
    Config config = config_of(1);
    config.scheduler_per_target = true;
    config.virtual_pfs = {{.name = "a", .share = {}}, {.name = "b", .share = {}}};
    if (with_classes) {
      config.scheduler.classes = {.mode = TrafficClasses::Mode::apportion,
                                  .classes = {{.name = "x"}, {.name = "y"}}};
    }
    make(config);
    for (std::uint32_t i = 0; i < 1600; ++i) {
      Held& io = request(named(i % 2 == 0 ? "a" : "b"));
      io.device = i / 2 % 2;
      io.traffic_class = with_classes ? i / 4 % 2 : 0;
      stage_->arrive(io, now_);
    }
    constexpr std::uint64_t kElsewhere = 40;
    stage_->served_elsewhere(named("a"), kElsewhere * kSize, 1h, now_);
    std::vector<Held*> released = let_go();
    for (int turn = 0; turn < 200; ++turn) {
      for (Held* io : std::exchange(released, {})) end(*io);
      released = let_go();
    }
    const auto done = [&](const char* name) { return counters(named(name)).done.all().requests; };
    EXPECT_NEAR(static_cast<double>(done("b")), static_cast<double>(done("a") + kElsewhere), 6)
        << (with_classes ? "two classes" : "one class");
    for (Held& io : requests_) stage_->abandon(io, now_);
    requests_.clear();
  }
}

class StageRetiringTest : public StageTest {
 protected:
  void SetUp() override {
    Config config = config_of(1);
    config.virtual_pfs.push_back({.name = "job-{jobid}", .share = {}});
    config.idle = 60s;
    make(config);
  }
  VirtualPfsId job(int number) { return named("job-" + std::to_string(number), "job-{jobid}"); }
};

TEST_F(StageRetiringTest, OneThatIsIdleIsRetiredAndItsHistoryIsKept) {
  const VirtualPfsId first = job(1);
  Held& io = arrive(first);
  ASSERT_THAT(let_go(), ElementsAre(&io));
  end(io);
  now_ += 59s;
  retire_idle();
  EXPECT_TRUE(stage_->virtual_pfs().is_there(first));
  now_ += 1s;
  retire_idle();
  EXPECT_FALSE(stage_->virtual_pfs().is_there(first));
  EXPECT_EQ(stage_->virtual_pfs().retired().counters.done.all().bytes, kSize);
  EXPECT_TRUE(stage_->virtual_pfs().is_there(named("a"))) << "the configuration's own stay";
  const VirtualPfsId second = job(2);
  EXPECT_EQ(second.app, first.app);
  EXPECT_NE(second, first);
}

TEST_F(StageRetiringTest, OneThatHasARequestStays) {
  const VirtualPfsId whose = job(1);
  Held& outstanding = arrive(whose);
  ASSERT_EQ(let_go().size(), 1U);
  EXPECT_TRUE(stage_->give_up_slot(outstanding, now_));
  now_ += 1000s;
  retire_idle();
  EXPECT_TRUE(stage_->virtual_pfs().is_there(whose)) << "its end is still to come";
  end(outstanding);
  now_ += 61s;
  retire_idle();
  EXPECT_FALSE(stage_->virtual_pfs().is_there(whose));
}

TEST_F(StageRetiringTest, OneThatIsAskedForBeforeAllHaveForgottenItStays) {
  const VirtualPfsId found_again = job(1);
  const VirtualPfsId used_again = job(2);
  const VirtualPfsId gone = job(3);
  now_ += 61s;
  stage_->find_idle(100, now_);
  ASSERT_TRUE(stage_->has_idle());
  EXPECT_EQ(job(1), found_again);
  Held& io = arrive(used_again);  // by a number that a caller had kept
  while (stage_->has_idle()) stage_->retire(1, now_);
  EXPECT_TRUE(stage_->virtual_pfs().is_there(found_again));
  EXPECT_TRUE(stage_->virtual_pfs().is_there(used_again));
  EXPECT_FALSE(stage_->virtual_pfs().is_there(gone));
  stage_->abandon(io, now_);
}

TEST_F(StageRetiringTest, OneThatAReloadBringsBackBeforeItIsRetiredStays) {
  const VirtualPfsId a = named("a");
  const VirtualPfsId first = job(1);
  Config without = config_of(1);
  without.virtual_pfs = {{.name = "job-{jobid}", .share = {}}};
  without.idle = 60s;
  stage_->reconfigure(without, now_);
  now_ += 61s;
  stage_->find_idle(100, now_);
  Config with = without;
  with.virtual_pfs.push_back({.name = "a", .share = {}});
  with.virtual_pfs.push_back({.name = "job-1", .share = {.weight = 9}});
  stage_->reconfigure(with, now_);
  while (stage_->has_idle()) stage_->retire(1, now_);
  EXPECT_TRUE(stage_->virtual_pfs().is_there(a));
  EXPECT_TRUE(stage_->virtual_pfs().is_there(first));
}

TEST_F(StageRetiringTest, OneThatTheConfigurationHasNoMoreIsRetiredToo) {
  const VirtualPfsId a = named("a");
  Config config = config_of(1);
  config.virtual_pfs = {{.name = "b", .share = {}}};
  config.idle = 60s;
  stage_->reconfigure(config, now_);
  retire_idle();
  EXPECT_TRUE(stage_->virtual_pfs().is_there(a));
  now_ += 61s;
  retire_idle();
  EXPECT_FALSE(stage_->virtual_pfs().is_there(a));
}

}  // namespace
}  // namespace vpfs::stage
