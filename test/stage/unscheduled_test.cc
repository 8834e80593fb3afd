// Requests that no scheduler holds: exempt ones, and all while bypass is on.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/stage.h"
#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnscheduledTest : public StageRig {
 protected:
  static Config config_of(std::uint32_t depth) {
    Config config;
    config.scheduler.depth.requests = depth;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {.rate = {kSize}, .burst = {kSize}}},
                          {.name = "b", .share = {}}};
    config.rules = {{.name = "root", .virtual_pfs = "a", .exempt = true},
                    {.name = "all", .virtual_pfs = "a"}};
    return config;
  }
  void SetUp() override { make(config_of(1)); }

  Place place(bool exempt = false, const std::string& name = "a") {
    return find(
        {.virtual_pfs = name, .declared_name = name, .rule = exempt ? 0U : 1U, .exempt = exempt});
  }
  Held& exempt() { return arrive(place(true)); }
  Held& scheduled() { return arrive(place()); }
  void set_bypass(bool on) { stage_->bypass(on, now_); }
  const Counters& counters() const { return stage_->virtual_pfs().counters(AppId{1}); }
  const Histograms& record() const { return *stage_->virtual_pfs()[AppId{1}].histograms; }
  void expect_nothing_left() {
    EXPECT_EQ(stage_->outstanding() + stage_->queued() + stage_->unscheduled(), 0U);
    for (Lanes::Lane& lane : stage_->lanes()) {
      EXPECT_EQ(lane.scheduler->outstanding() + lane.scheduler->queued(), 0U);
    }
    EXPECT_EQ(counters().queued.bytes + counters().outstanding.bytes, 0U);
    EXPECT_EQ(stage_->virtual_pfs()[AppId{1}].requests, 0U);
  }
};

TEST_F(UnscheduledTest, AnExemptRequestPassesDepthAndLimitAndTakesNeither) {
  Held& first = scheduled();
  ASSERT_THAT(let_go(), ElementsAre(&first));
  Held& second = scheduled();
  Held& root = exempt();
  EXPECT_THAT(let_go(), ElementsAre(&root));
  EXPECT_EQ(stage_->outstanding(), 2U);
  EXPECT_EQ(stage_->unscheduled(), 1U);
  end(first);
  now_ += 1s;
  EXPECT_THAT(let_go(), ElementsAre(&second)) << "the tokens and the slot are still there";
  end(root);
  end(second);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, AnExemptRequestIsCountedWithoutItsCost) {
  Held& root = exempt();
  ASSERT_THAT(let_go(), ElementsAre(&root));
  now_ += 3ms;
  end(root);
  const Counters& seen = counters();
  EXPECT_EQ(seen.arrived.of(IoKind::read).requests, 1U);
  EXPECT_EQ(seen.sent.of(IoKind::read).bytes, kSize);
  EXPECT_EQ(seen.done.of(IoKind::read).bytes, kSize);
  EXPECT_EQ(seen.cost_sent + seen.cost_done, 0U);
  EXPECT_EQ(record().wait.count(), 1U);
  EXPECT_EQ(record().service.max(), 3ms);
  EXPECT_EQ(record().statistics.read_time.sum, 3000U);
  EXPECT_EQ(record().unscheduled.requests, 1U);
  EXPECT_EQ(record().unscheduled.bytes, kSize);
  EXPECT_EQ(stage_->rules().row(stage_->rules().find("root"))->hits, 1U);
  EXPECT_EQ(stage_->rules().row(stage_->rules().find("all"))->hits, 0U);
}

TEST_F(UnscheduledTest, AnExemptRequestCanBeTakenOutInEveryState) {
  Held& parked = request(place(true));
  stage_->park(parked, SlowClient::none, now_);
  Held& taken = exempt();
  EXPECT_TRUE(stage_->take_back(taken, now_));
  EXPECT_EQ(taken.state, Held::State::parked);
  stage_->arrive(taken, now_);
  Held& refused = exempt();
  EXPECT_TRUE(stage_->refuse(refused, now_));
  Held& queued = exempt();
  stage_->abandon(queued, now_);
  EXPECT_THAT(let_go(), ElementsAre(&taken));
  EXPECT_FALSE(stage_->take_back(taken, now_));
  EXPECT_FALSE(stage_->refuse(taken, now_));
  EXPECT_FALSE(stage_->give_up_slot(taken, now_)) << "it has none";
  Held& released = exempt();
  std::vector<Held*> out;
  (void)stage_->release(now_, out);  // and not taken over
  ASSERT_THAT(out, ElementsAre(&released));
  stage_->abandon(released, now_);
  Held& outstanding = exempt();
  ASSERT_THAT(let_go(), ElementsAre(&outstanding));
  stage_->abandon(outstanding, now_);
  Held& late = exempt();
  ASSERT_THAT(let_go(), ElementsAre(&late));
  stage_->end(late, {.moved = {}, .failed = false, .refused = true}, now_);
  stage_->abandon(parked, now_);
  end(taken);
  expect_nothing_left();
  EXPECT_EQ(counters().refused.all().requests, 2U);
  EXPECT_EQ(counters().given_up, 0U);
}

TEST_F(UnscheduledTest, MetadataIsTheSame) {
  Held& busy = scheduled();
  ASSERT_THAT(let_go(), ElementsAre(&busy));
  Held& root = request(place(true));
  root.kind = IoKind::metadata;
  root.size = {};
  stage_->arrive(root, now_);
  EXPECT_THAT(let_go(), ElementsAre(&root));
  stage_->end(root, {.moved = {}}, now_);
  end(busy);
  EXPECT_EQ(counters().done.of(IoKind::metadata).requests, 1U);
  expect_nothing_left();
}

// One request uses the rate of a second.
TEST_F(UnscheduledTest, WhatIsLetPassTakesNoSlotButItsVirtualPfsOwesIt) {
  Held& first = scheduled();
  ASSERT_THAT(let_go(), ElementsAre(&first));
  Held& second = scheduled();
  Held& third = scheduled();
  EXPECT_THAT(let_go(), IsEmpty());
  stage_->let_pass(third, now_);
  EXPECT_THAT(let_go(), ElementsAre(&third)) << "not in its turn";
  stage_->let_pass(third, now_);  // it has gone
  EXPECT_EQ(stage_->unscheduled(), 1U);
  end(first);
  end(third);
  now_ += 1999ms;
  EXPECT_THAT(let_go(), IsEmpty()) << "the tokens of two seconds are taken";
  now_ += 1ms;
  EXPECT_THAT(let_go(), ElementsAre(&second));
  end(second);
  EXPECT_EQ(counters().cost_sent, 3 * kSize);
  EXPECT_EQ(counters().cost_done, 3 * kSize);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, WhatIsLetPassMovesTheTagOfItsFlow) {
  Config config = config_of(1);
  config.virtual_pfs.front().share = {};
  config.rules.push_back({.name = "b", .virtual_pfs = "b"});
  make(config);
  const auto of_b = [&]() -> Held& {
    return arrive(find({.virtual_pfs = "b", .declared_name = "b", .rule = 2}));
  };
  Held& first = scheduled();
  ASSERT_THAT(let_go(), ElementsAre(&first));
  std::vector<Held*> all_of_a;
  for (int i = 0; i < 4; ++i) all_of_a.push_back(&scheduled());
  stage_->let_pass(*all_of_a[0], now_);
  stage_->let_pass(*all_of_a[1], now_);
  EXPECT_THAT(let_go(), ElementsAre(all_of_a[0], all_of_a[1]));
  Held& b1 = of_b();
  Held& b2 = of_b();
  Held& b3 = of_b();
  std::vector<Held*> order;
  Held* busy = &first;
  for (int i = 0; i < 5; ++i) {
    end(*busy);
    const std::vector<Held*> next = let_go();
    ASSERT_EQ(next.size(), 1U);
    order.push_back(busy = next.front());
  }
  EXPECT_THAT(order, ElementsAre(&b1, &b2, &b3, all_of_a[2], all_of_a[3]))
      << "b has had as much as a then";
}

TEST_F(UnscheduledTest, BypassLetsEverythingGoAtOnceInTheOrderOfArrival) {
  Config config = config_of(1);
  config.scheduler_per_target = true;
  config.scheduler.classes = {.mode = TrafficClasses::Mode::strict,
                              .classes = {{.name = "x"}, {.name = "y"}}};
  make(config);
  std::vector<Held*> waiting;
  for (std::uint32_t i = 0; i < 12; ++i) {
    now_ += 1ms;
    Held& io = request(place(false, i % 2 == 0 ? "a" : "b"));
    io.device = i % 3;
    io.traffic_class = static_cast<std::uint8_t>(i / 2 % 2);
    stage_->arrive(io, now_);
    std::vector<Held*> out;
    if (i < 3) out = let_go();
    if (out.empty()) waiting.push_back(&io);
  }
  ASSERT_EQ(stage_->queued(), waiting.size());
  now_ += 1ms;
  set_bypass(true);
  EXPECT_TRUE(stage_->bypassed());
  EXPECT_EQ(let_go(), waiting);
  EXPECT_EQ(stage_->queued(), 0U);
  EXPECT_EQ(until_, kNever);
  for (Held& io : requests_) end(io);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, WhatArrivesDuringABypassGoesTooAndAfterItIsScheduledAgain) {
  set_bypass(true);
  std::vector<Held*> all;
  for (int i = 0; i < 5; ++i) all.push_back(&scheduled());
  EXPECT_EQ(let_go(), all);
  set_bypass(false);
  EXPECT_FALSE(stage_->bypassed());
  Held& first = scheduled();
  Held& second = scheduled();
  EXPECT_THAT(let_go(), ElementsAre(&first)) << "what went without a slot holds no request back";
  for (Held* io : all) end(*io);
  EXPECT_THAT(let_go(), IsEmpty());
  now_ += 1s;
  end(first);
  EXPECT_THAT(let_go(), ElementsAre(&second));
  end(second);
  EXPECT_EQ(counters().cost_done, 2 * kSize) << "the bypass cost nothing";
  expect_nothing_left();
}

TEST_F(UnscheduledTest, ABypassThatEndsBeforeAnythingLeftLetsItGoAllTheSame) {
  Held& first = scheduled();
  Held& second = scheduled();
  set_bypass(true);
  set_bypass(false);
  EXPECT_THAT(let_go(), ElementsAre(&first, &second));
  end(first);
  end(second);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, RequestsFromBeforeABypassGiveTheirSlotsBackDuringIt) {
  Held& first = scheduled();
  Held& slow = scheduled();
  ASSERT_THAT(let_go(), ElementsAre(&first));
  set_bypass(true);
  ASSERT_THAT(let_go(), ElementsAre(&slow));
  EXPECT_TRUE(stage_->give_up_slot(first, now_));
  end(first);
  set_bypass(false);
  now_ += 1s;
  Held& next = scheduled();
  EXPECT_THAT(let_go(), ElementsAre(&next));
  end(next);
  end(slow);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, AReloadDuringABypassLeavesItOn) {
  set_bypass(true);
  Config config = config_of(1);
  config.policy = "fifo";
  reconfigure(config);
  Held& first = scheduled();
  Held& second = scheduled();
  EXPECT_THAT(let_go(), ElementsAre(&first, &second));
  set_bypass(false);
  end(first);
  end(second);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, ClientLimitsDoNotCountWhatGoesWithoutASlot) {
  ClientId client{};
  for (int i = 0; i < 6; ++i) client = stage_->join_client("node");
  const auto come = [&](const std::string& name) {
    Held& io = request(place(false, name));
    io.client = client;
    stage_->arrive(io, now_);
  };
  come("b");
  for (int i = 0; i < 4; ++i) come("a");
  ASSERT_EQ(let_go().size(), 1U);
  set_bypass(true);
  for (int i = 0; i < 20; ++i) come("a");
  EXPECT_EQ(let_go().size(), 24U);
  for (Held& io : requests_) {
    EXPECT_EQ(io.state, Held::State::outstanding);
    end(io);
  }
  EXPECT_EQ(counters().excess, 0U);
  expect_nothing_left();
}

TEST_F(UnscheduledTest, BypassIsToldOnceForOnAndOff) {
  set_bypass(false);
  EXPECT_THAT(stage_->take_notices(), IsEmpty());
  (void)scheduled();
  set_bypass(true);
  set_bypass(true);
  EXPECT_THAT(stage_->take_notices(),
              ElementsAre(::testing::AllOf(::testing::HasSubstr("bypass is on"),
                                           ::testing::HasSubstr("1 requests"))));
  set_bypass(false);
  EXPECT_THAT(stage_->take_notices(), ElementsAre(::testing::HasSubstr("bypass is off")));
}

}  // namespace
}  // namespace vpfs::stage
