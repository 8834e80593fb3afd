#include "sim/placement/data_place.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

constexpr std::uint32_t kTasks = 64;

DataPlace on(std::uint32_t devices, Access access) {
  DataPlace place{.access = access};
  for (NodeId node = 0; node < devices; ++node) place.devices.push_back(node);
  return place;
}

TEST(SimDataPlace, TasksAreDividedEvenly) {
  const DataPlace place = on(16, Access::local);
  std::vector<int> tasks(16);
  for (std::uint32_t task = 0; task < kTasks; ++task) ++tasks[place.own(task, kTasks)];
  EXPECT_EQ(tasks, std::vector<int>(16, 4));
}

TEST(SimDataPlace, LocalAccessStaysAtItsOwn) {
  const DataPlace place = on(16, Access::local);
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(place.draw(63, kTasks, 100, random), 15U);
}

TEST(SimDataPlace, AffinityGivesEachDeviceAsManyTasks) {
  const DataPlace place = on(16, Access::affinity);
  Random random(1);
  std::vector<int> tasks(16);
  for (std::uint32_t task = 0; task < kTasks; ++task) {
    const std::uint32_t first = place.draw(task, kTasks, 100, random);
    EXPECT_NE(first, place.own(task, kTasks));
    EXPECT_EQ(place.draw(task, kTasks, 100, random), first);
    ++tasks[first];
  }
  EXPECT_EQ(tasks, std::vector<int>(16, 4));
}

TEST(SimDataPlace, DispersedAccessGoesToAllOthers) {
  const DataPlace place = on(16, Access::disperse);
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(place.draw(0, kTasks, 100, random));
  EXPECT_EQ(seen.size(), 15U);
  EXPECT_FALSE(seen.contains(0));
}

TEST(SimDataPlace, AsManyAsAskedForAreRemote) {
  const DataPlace place = on(64, Access::disperse);
  Random random(1);
  int remote = 0;
  for (int i = 0; i < 10'000; ++i) remote += place.draw(5, kTasks, 30, random) != 5 ? 1 : 0;
  EXPECT_NEAR(remote, 3000, 150);
}

TEST(SimDataPlace, OnePlaceIsEverybodysOwn) {
  Random random(1);
  for (const Access access : {Access::disperse, Access::affinity, Access::local}) {
    EXPECT_EQ(on(1, access).draw(7, kTasks, 100, random), 0U);
  }
  const DataPlace central{.servers = 4, .access = Access::local};
  EXPECT_TRUE(central.is_central());
  EXPECT_EQ(central.draw(63, kTasks, 0, random), 3U);
}

}  // namespace
}  // namespace vpfs::sim
