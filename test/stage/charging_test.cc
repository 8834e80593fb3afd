// What requests are charged whose size was not known when they went.
#include <chrono>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes kAskedFor = {8 * kMiB};

class StageCharging : public StageRig {
 protected:
  StageCharging() {
    Config config;
    config.policy = "sfq";
    config.scheduler.depth.requests = 100;
    config.cost.per_request = {};
    // Eight seconds' tokens for one such read.
    config.virtual_pfs = {{.name = "a", .share = {.rate = {kMiB}, .burst = {kMiB}}},
                          {.name = "b", .share = {}}};
    make(config);
  }

  Place place(const char* name) { return find({.virtual_pfs = name, .declared_name = name}); }
  // A read whose size is estimated, at the data server.
  Held& read(const char* name, Bytes asked = kAskedFor) {
    Held& io = request(place(name));
    io.asked = asked;
    io.size_is_estimated = true;
    stage_->arrive(io, now_);
    EXPECT_THAT(let_go(), ElementsAre(&io));
    return io;
  }
  // Reads of this virtual PFS have found nothing lately.
  void find_nothing(const char* name) {
    for (int i = 0; i < 100; ++i) {
      stage_->end(read(name), {.moved = {}}, now_);
      now_ += 10s;
    }
  }
  [[nodiscard]] Cost charged(const char* name) {
    const Counters& counters = stage_->virtual_pfs().counters(place(name).id.app);
    return counters.cost_done;
  }
  // No further request goes for so long.
  void expect_debt(const char* name, Duration debt) {
    Held& next = arrive(place(name));
    now_ += debt - 10ms;
    EXPECT_THAT(let_go(), IsEmpty());
    now_ += 20ms;
    EXPECT_THAT(let_go(), ElementsAre(&next));
    end(next);
  }
};

TEST_F(StageCharging, AReadThatHasGivenItsSlotUpIsChargedForWhatItMoves) {
  find_nothing("a");
  Held& io = read("a");
  EXPECT_LT(io.size.count, 16 * kKiB);
  EXPECT_TRUE(stage_->give_up_slot(io, now_));
  const Cost before = charged("a") - io.cost;
  stage_->end(io, {.moved = kAskedFor}, now_);
  EXPECT_EQ(charged("a") - before, kAskedFor.count);
  expect_debt("a", 7s);
}

TEST_F(StageCharging, AReadThatHasGivenItsSlotUpShowsWhatOthersWillGive) {
  for (int i = 0; i < 100; ++i) {
    Held& io = read("b");
    EXPECT_TRUE(stage_->give_up_slot(io, now_));
    stage_->end(io, {.moved = {}}, now_);
  }
  EXPECT_LT(read("b").size.count, 16 * kKiB);
}

// Its client may have taken nearly all of it, and closed the connection.
TEST_F(StageCharging, AnAbandonedReadIsChargedForAllThatItAskedFor) {
  for (const bool gave_up : {false, true}) {
    find_nothing("a");
    const Cost before = charged("a");
    Held& io = read("a");
    if (gave_up) {
      EXPECT_TRUE(stage_->give_up_slot(io, now_));
    }
    stage_->abandon(io, now_, {1000});
    EXPECT_EQ(charged("a") - before, kAskedFor.count);
    expect_debt("a", 7s);
  }
}

TEST_F(StageCharging, OneThatWasNotForwardedIsChargedAsEstimated) {
  find_nothing("a");
  const Cost before = charged("a");
  Held& io = request(place("a"));
  io.asked = kAskedFor;
  io.size_is_estimated = true;
  stage_->arrive(io, now_);
  std::vector<Held*> released;
  (void)stage_->release(now_, released);
  ASSERT_THAT(released, ElementsAre(&io));
  stage_->abandon(io, now_);
  EXPECT_EQ(charged("a") - before, io.cost);
  EXPECT_LT(io.cost, 16 * kKiB);
}

// A write to a connection whose client has gone is not sent.
TEST_F(StageCharging, WhatItsOwnerHasNotBegunToSendIsNotCharged) {
  for (const bool is_released : {false, true}) {
    for (const bool is_taken_over : {false, true}) {
      const Cost before = charged("b");
      Held& io = arrive(place("b"), IoKind::write);
      std::vector<Held*> released;
      if (is_released) (void)stage_->release(now_, released);
      if (is_taken_over) Stage::took_over(io);
      stage_->withdraw(io, now_);
      EXPECT_LE(charged("b") - before, 1U) << "the least that a request costs";
      EXPECT_EQ(stage_->outstanding() + stage_->queued(), 0U);
      EXPECT_EQ(io.state, Held::State::parked);
    }
  }
}

// Its size is what it counts for, and it has no end.
TEST_F(StageCharging, ARequestThatGoesOnAndOnIsChargedAsItMoves) {
  for (const bool gave_up : {false, true}) {
    for (const bool is_abandoned : {false, true}) {
      Held& io = arrive(place("b"), IoKind::write);
      ASSERT_THAT(let_go(), ElementsAre(&io));
      const Cost before = charged("b");
      if (gave_up) {
        EXPECT_TRUE(stage_->give_up_slot(io, now_));
      }
      stage_->has_moved(io, {kSize / 2}, now_);
      for (std::uint64_t moved = kMiB; moved <= 4 * kMiB; moved += kMiB) {
        stage_->has_moved(io, {moved}, now_);
        EXPECT_EQ(charged("b") - before, moved - (gave_up ? 0 : kSize));
      }
      const Bytes moved = {5 * kMiB};
      if (is_abandoned) {
        stage_->abandon(io, now_, moved);
      } else {
        stage_->end(io, {.moved = moved}, now_);
      }
      EXPECT_EQ(charged("b") - before, moved.count);
    }
  }
  EXPECT_EQ(stage_->outstanding(), 0U);
}

TEST_F(StageCharging, WhatMovesTakesTokensToo) {
  Held& io = arrive(place("a"), IoKind::write);
  ASSERT_THAT(let_go(), ElementsAre(&io));
  stage_->has_moved(io, {8 * kMiB}, now_);
  expect_debt("a", 7s);
  end(io);
}

}  // namespace
}  // namespace vpfs::stage
