// Requests that their owner keeps back because a client is slow.

#include <gtest/gtest.h>

#include "stage/stage.h"
#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

using StageParked = StageRig;

TEST_F(StageParked, TimeInWhichAnyClientIsWaitedForCountsOnce) {
  make({});
  const Place place = find({});
  const AppId a = place.id.app;
  EXPECT_FALSE(stage_->waits_for_client(a));
  Held& behind = request(place);
  stage_->park(behind, SlowClient::of_its_handle, now_);
  const TimePoint begin = now_;
  ASSERT_TRUE(stage_->waits_for_client(a));
  EXPECT_FALSE(stage_->waits_for_client(a)->for_its_own);
  now_ += 1s;
  Held& own = request(place);
  stage_->park(own, SlowClient::its_own, now_);
  EXPECT_TRUE(stage_->waits_for_client(a)->for_its_own);
  EXPECT_EQ(stage_->waits_for_client(a)->since, begin);
  stage_->park(own, SlowClient::of_its_handle, now_);
  EXPECT_FALSE(stage_->waits_for_client(a)->for_its_own);
  now_ += 1s;
  stage_->abandon(behind, now_);
  stage_->arrive(own, now_);
  EXPECT_FALSE(stage_->waits_for_client(a));
  EXPECT_EQ(stage_->virtual_pfs().counters(a).slow_client, 2s);
  stage_->abandon(own, now_);
}

}  // namespace
}  // namespace vpfs::stage
