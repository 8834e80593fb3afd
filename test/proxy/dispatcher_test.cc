#include "proxy/dispatcher.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/registry.h"

namespace vpfs::proxy {
namespace {

constexpr TimePoint kStart{};

Dispatcher::MakeScheduler maker(const std::string& policy, std::uint32_t depth) {
  return [=] { return std::move(make_scheduler(policy, {.depth = {.requests = depth}}).value()); };
}

class DispatcherTest : public ::testing::Test {
 protected:
  void make(std::uint32_t depth, std::size_t workers = 1, bool lane_per_target = false) {
    Dispatcher::Setup setup = {.make_scheduler = maker("sfq", depth),
                               .lane_per_target = lane_per_target,
                               .cost_model = CostModel({}),
                               .client_limits = {}};
    dispatcher_ = std::make_unique<Dispatcher>(
        std::move(setup),
        stage::VirtualPfsTable({{.name = "a", .share = {.weight = 2}}, {.name = "b", .share = {}}},
                               10),
        workers, [this](std::size_t worker) { woken_.push_back(worker); }, kStart);
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
    (void)dispatcher_->turn(worker, what, kStart, released);
    return released;
  }

  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::unique_ptr<PendingIo>> ios_;
  std::vector<std::size_t> woken_;
};

TEST_F(DispatcherTest, ReleasesUpToTheDepthAndTheRestAsOthersEnd) {
  make(2);
  PendingIo& first = io(1);
  PendingIo& second = io(1);
  PendingIo& third = io(1);
  EXPECT_EQ(turn({.arrived = {&first, &second, &third}}),
            (std::vector<PendingIo*>{&first, &second}));
  EXPECT_EQ(turn({.ended = {{.io = &first, .bytes = 1000, .failed = false}}}),
            (std::vector<PendingIo*>{&third}));
  EXPECT_EQ(dispatcher_->outstanding(), 2U);
}

TEST_F(DispatcherTest, WhatBelongsToAnotherWorkerWaitsInItsInbox) {
  make(4, 2);
  PendingIo& mine = io(1, 0);
  PendingIo& yours = io(1, 1);
  EXPECT_EQ(turn({.arrived = {&mine, &yours}}), (std::vector<PendingIo*>{&mine}));
  EXPECT_EQ(woken_, (std::vector<std::size_t>{1}));
  EXPECT_EQ(turn({}, 1), (std::vector<PendingIo*>{&yours}));
}

TEST_F(DispatcherTest, AbandonFreesTheSlotInEveryState) {
  make(1, 2);
  PendingIo& outstanding = io(1);
  PendingIo& queued = io(2);
  PendingIo& waiting = io(1, 1);
  ASSERT_EQ(turn({.arrived = {&outstanding, &queued, &waiting}}).size(), 1U);
  dispatcher_->abandon(queued, kStart);
  EXPECT_EQ(dispatcher_->queued(), 1U);
  dispatcher_->abandon(outstanding, kStart);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_TRUE(turn({}).empty());  // lets `waiting` go, into the inbox of worker 1
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
  dispatcher_->abandon(waiting, kStart);
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  EXPECT_TRUE(turn({}, 1).empty());
}

TEST_F(DispatcherTest, TakeBackFailsOnceTheRequestIsReleased) {
  make(1);
  PendingIo& first = io(1);
  PendingIo& second = io(1);
  (void)turn({.arrived = {&first, &second}});
  EXPECT_FALSE(dispatcher_->take_back(first, kStart));
  EXPECT_TRUE(dispatcher_->take_back(second, kStart));
  EXPECT_TRUE(dispatcher_->take_back(second, kStart)) << "it is held by its session alone now";
  EXPECT_EQ(dispatcher_->queued(), 0U);
}

TEST_F(DispatcherTest, ASlotThatWasGivenUpIsNotFreedTwice) {
  make(1);
  PendingIo& slow = io(1);
  PendingIo& next = io(2);
  (void)turn({.arrived = {&slow, &next}});
  EXPECT_TRUE(dispatcher_->give_up_slot(slow, kStart));
  EXPECT_FALSE(dispatcher_->give_up_slot(slow, kStart));
  EXPECT_EQ(turn({}), (std::vector<PendingIo*>{&next}));
  (void)turn({.ended = {{.io = &slow, .bytes = 1000, .failed = false}}});
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
  dispatcher_->inspect(kStart, [](const Dispatcher::Books& books) {
    EXPECT_EQ(books.table[AppId{1}].done_bytes.count, 1000U);
    EXPECT_EQ(books.table[AppId{1}].outstanding_bytes.count, 0U);
    EXPECT_EQ(books.table[AppId{1}].given_up_requests, 1U);
    EXPECT_EQ(books.table[AppId{2}].outstanding_bytes.count, 1000U);
  });
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
  dispatcher_->inspect(kStart, [](const Dispatcher::Books& books) {
    EXPECT_EQ(books.lanes[0].scheduler->outstanding(), 0U);
    EXPECT_EQ(books.lanes[0].scheduler->queued(), 0U);
    std::uint64_t done = 0;
    for (std::uint32_t i = 0; i < books.table.size(); ++i) {
      EXPECT_EQ(books.table[AppId{i}].queued_bytes.count, 0U);
      EXPECT_EQ(books.table[AppId{i}].outstanding_bytes.count, 0U);
      done += books.table[AppId{i}].done_requests;
    }
    EXPECT_EQ(done, 700U);
  });
}

// What a reload moves from one scheduler to the next.
TEST_F(DispatcherTest, AnotherSchedulerTakesOverInTheOrderOfArrival) {
  make(2);
  PendingIo& first = io(1);
  PendingIo& second = io(2);
  std::vector<PendingIo*> waiting;
  for (int i = 0; i < 6; ++i) {
    waiting.push_back(&io(1 + static_cast<std::uint32_t>(i) % 2));
    waiting.back()->arrival = kStart + std::chrono::seconds(i);
  }
  ASSERT_EQ(turn({.arrived = {&first, &second}}).size(), 2U);
  EXPECT_TRUE(turn({.arrived = waiting}).empty());
  const std::vector<stage::VirtualPfsConfig> declared = {{.name = "a", .share = {.weight = 7}},
                                                         {.name = "c", .share = {}}};
  dispatcher_->reconfigure({.make_scheduler = maker("fifo", 3),
                            .cost_model = CostModel({}),
                            .client_limits = {},
                            .virtual_pfs = declared,
                            .most_virtual_pfs = 10},
                           kStart);
  EXPECT_EQ(woken_, (std::vector<std::size_t>{0}));
  EXPECT_EQ(dispatcher_->queued(), 6U);
  EXPECT_EQ(dispatcher_->outstanding(), 2U);
  std::vector<PendingIo*> order = turn({});
  EXPECT_EQ(order.size(), 1U) << "two that the scheduler before sent are outstanding";
  const auto end = [](PendingIo* io) {
    return Turn::End{.io = io, .bytes = 1000, .failed = false};
  };
  for (const std::vector<Turn::End>& ended :
       {std::vector{end(&first), end(&second)}, std::vector{end(waiting[0]), end(waiting[1])},
        std::vector{end(waiting[2])}, std::vector{end(waiting[3])}}) {
    const std::vector<PendingIo*> released = turn({.ended = ended});
    order.insert(order.end(), released.begin(), released.end());
  }
  EXPECT_EQ(order, waiting);
  (void)turn({.ended = {end(waiting[4]), end(waiting[5])}});
  EXPECT_EQ(dispatcher_->outstanding(), 0U);
  dispatcher_->inspect(kStart, [](const Dispatcher::Books& books) {
    EXPECT_EQ(books.table[AppId{1}].share.weight, 7U);
    EXPECT_TRUE(books.table[AppId{2}].removed);
    EXPECT_EQ(books.table[AppId{3}].name, "c");
    EXPECT_EQ(books.table[AppId{1}].outstanding_requests, 0U);
    EXPECT_EQ(books.table[AppId{2}].outstanding_bytes.count, 0U);
  });
}

TEST_F(DispatcherTest, EachTargetHasADepthOfItsOwn) {
  make(1, 1, true);
  PendingIo& first = io(1);
  PendingIo& second = io(1);
  PendingIo& elsewhere = io(2);
  elsewhere.device = 102;
  EXPECT_EQ(turn({.arrived = {&first, &second, &elsewhere}}),
            (std::vector<PendingIo*>{&first, &elsewhere}));
  dispatcher_->inspect(kStart, [](const Dispatcher::Books& books) {
    ASSERT_EQ(books.lanes.size(), 2U);
    EXPECT_EQ(books.lanes[0].target, 0U);
    EXPECT_EQ(books.lanes[1].target, 102U);
    EXPECT_EQ(books.lanes[0].scheduler->queued(), 1U);
    EXPECT_EQ(books.lanes[1].scheduler->outstanding(), 1U);
  });
  dispatcher_->reconfigure({.make_scheduler = maker("fifo", 1),
                            .cost_model = CostModel({}),
                            .client_limits = {},
                            .virtual_pfs = {},
                            .most_virtual_pfs = 10},
                           kStart);
  EXPECT_EQ(dispatcher_->queued(), 1U);
  EXPECT_EQ(turn({.ended = {{.io = &elsewhere, .bytes = 1000, .failed = false}}}),
            (std::vector<PendingIo*>{}));
  EXPECT_EQ(turn({.ended = {{.io = &first, .bytes = 1000, .failed = false}}}),
            (std::vector<PendingIo*>{&second}));
}

TEST_F(DispatcherTest, WhatAClientHasTooManyOfComesBackToBeRefused) {
  make(1, 2);
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
  dispatcher_->abandon(*all[1], kStart);
  EXPECT_EQ(dispatcher_->queued(), 3U);
  (void)turn({.ended = {{.io = all[0], .bytes = 1, .failed = false}}});
  EXPECT_EQ(dispatcher_->outstanding(), 1U);
}

}  // namespace
}  // namespace vpfs::proxy
