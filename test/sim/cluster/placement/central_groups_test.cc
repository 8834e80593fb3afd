#include "sim/cluster/placement/central_groups.h"

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

TEST(CentralGroupsTest, TheLastGroupHasTheRest) {
  const CentralGroups groups(11, 3);
  for (std::uint32_t task = 0; task < 11; ++task) {
    EXPECT_EQ(groups.leader(task), task < 3 ? 0U : task < 6 ? 3U : 6U) << task;
  }
  EXPECT_EQ(groups.end(0), 3U);
  EXPECT_EQ(groups.end(3), 6U);
  EXPECT_EQ(groups.end(6), 11U);
}

TEST(CentralGroupsTest, EachTaskMayBeItsOwn) {
  const CentralGroups groups(4, 4);
  for (std::uint32_t task = 0; task < 4; ++task) {
    EXPECT_EQ(groups.leader(task), task);
    EXPECT_EQ(groups.end(task), task + 1);
  }
}

}  // namespace
}  // namespace vpfs::sim
