#include "proxy/slow_handles.h"

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

TEST(SlowHandles, BlockedIsOneThatIsSlowAndKeepsARequestWaiting) {
  SlowHandles handles;
  EXPECT_FALSE(handles.any());
  handles.slowed(7);
  EXPECT_TRUE(handles.any());
  EXPECT_TRUE(handles.is_slow(7));
  EXPECT_FALSE(handles.is_slow(8));
  EXPECT_FALSE(handles.is_blocked(7));
  handles.stuck(7);
  EXPECT_TRUE(handles.is_blocked(7));
  EXPECT_FALSE(handles.is_blocked(8));
  EXPECT_EQ(handles.freed(), 0U);
}

TEST(SlowHandles, ItIsFreedWithTheLastSlowTransferOrTheLastStuckRequest) {
  SlowHandles handles;
  handles.slowed(7);
  handles.slowed(7);
  handles.stuck(7);
  handles.stuck(7);
  handles.slow_ended(7);
  handles.stuck_ended(7);
  EXPECT_TRUE(handles.is_blocked(7));
  handles.stuck_ended(7);
  EXPECT_FALSE(handles.is_blocked(7));
  EXPECT_TRUE(handles.is_slow(7));
  EXPECT_EQ(handles.freed(), 1U);
  handles.stuck(7);
  handles.slow_ended(7);
  EXPECT_FALSE(handles.is_blocked(7));
  EXPECT_FALSE(handles.any());
  EXPECT_EQ(handles.freed(), 2U);
  handles.stuck_ended(7);
  EXPECT_EQ(handles.freed(), 2U);
  handles.slowed(7);
  handles.slow_ended(7);
  EXPECT_EQ(handles.freed(), 3U);
}

TEST(SlowHandles, ItTellsWhenMoreHasToBeHeldBack) {
  SlowHandles handles;
  handles.slowed(7);
  handles.slowed(8);
  EXPECT_EQ(handles.held_back(), 0U);
  handles.stuck(7);
  handles.stuck(7);
  EXPECT_EQ(handles.held_back(), 1U);
  handles.stuck(8);
  EXPECT_EQ(handles.held_back(), 2U);
  handles.hold_back();
  EXPECT_EQ(handles.held_back(), 3U);
}

TEST(SlowHandles, OthersAreNotFreedWithIt) {
  SlowHandles handles;
  for (const std::uint64_t handle : {1U, 2U}) {
    handles.slowed(handle);
    handles.stuck(handle);
  }
  handles.slow_ended(1);
  EXPECT_FALSE(handles.is_blocked(1));
  EXPECT_TRUE(handles.is_blocked(2));
  EXPECT_TRUE(handles.any());
}

}  // namespace
}  // namespace vpfs::proxy
