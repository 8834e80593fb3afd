#include "sim/cluster/placement/data_place.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

constexpr std::uint32_t kTasks = 64;

// Task i is on node i; devices are on the first nodes.
DataPlace on(std::uint32_t devices, Access access) {
  DataPlace place{.access = access};
  for (NodeId node = 0; node < devices; ++node) place.devices.push_back(node);
  return place;
}

std::uint32_t draw(const DataPlace& place, std::uint32_t task, std::uint32_t remote_percent,
                   Random& random) {
  return place.draw(task, kTasks, place.home(task), remote_percent, random);
}

TEST(SimDataPlace, OnlyNodesWithADeviceHaveOne) {
  const DataPlace place{.devices = {7, 3}};
  EXPECT_EQ(place.home(3), 1U);
  EXPECT_EQ(place.home(7), 0U);
  EXPECT_FALSE(place.home(0).has_value());
}

TEST(SimDataPlace, LocalAccessStaysOnTheNode) {
  const DataPlace place = on(16, Access::local);
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(draw(place, 15, 100, random), 15U);
    EXPECT_EQ(draw(place, 63, 0, random), 15U);  // has none, so keeps to one
  }
}

TEST(SimDataPlace, WithoutADeviceAllIsRemote) {
  const DataPlace place = on(16, Access::disperse);
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draw(place, 40, 0, random));
  EXPECT_EQ(seen.size(), 16U);
}

TEST(SimDataPlace, AffinityGivesEachDeviceAsManyTasks) {
  for (const std::uint32_t devices : {4U, 16U, 64U}) {
    const DataPlace place = on(devices, Access::affinity);
    Random random(1);
    std::vector<std::uint32_t> tasks(devices);
    for (std::uint32_t task = 0; task < kTasks; ++task) {
      const std::uint32_t first = draw(place, task, 100, random);
      EXPECT_EQ(draw(place, task, 100, random), first);
      ++tasks[first];
    }
    EXPECT_EQ(tasks, std::vector<std::uint32_t>(devices, kTasks / devices));
  }
}

TEST(SimDataPlace, WithADeviceForEachTaskAffinityIsToAnother) {
  const DataPlace place = on(kTasks, Access::affinity);
  Random random(1);
  EXPECT_EQ(draw(place, 5, 100, random), 37U);
  EXPECT_EQ(draw(place, 5, 0, random), 5U);
}

TEST(SimDataPlace, DispersedAccessGoesToAll) {
  const DataPlace place = on(16, Access::disperse);
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draw(place, 0, 100, random));
  EXPECT_EQ(seen.size(), 16U);
}

TEST(SimDataPlace, AsManyAsAskedForAreRemote) {
  const DataPlace place = on(64, Access::affinity);
  Random random(1);
  int remote = 0;
  for (int i = 0; i < 10'000; ++i) remote += draw(place, 5, 30, random) != 5 ? 1 : 0;
  EXPECT_NEAR(remote, 3000, 150);
}

TEST(SimDataPlace, TheDrawsAreTheSameWhateverTheAccessIs) {
  Random one(1);
  Random other(1);
  (void)draw(on(16, Access::disperse), 3, 50, one);
  (void)draw(on(16, Access::local), 3, 50, other);
  EXPECT_EQ(one.next(), other.next());
}

TEST(SimDataPlace, ACentralServerIsDrawnForEachAccess) {
  for (const Access access : {Access::disperse, Access::affinity, Access::local}) {
    const DataPlace central{.servers = 4, .access = access};
    EXPECT_TRUE(central.is_central());
    Random random(1);
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 100; ++i) seen.insert(draw(central, 0, 0, random));
    EXPECT_EQ(seen.size(), 4U);
  }
}

TEST(SimDataPlace, OnePlaceIsForAll) {
  Random random(1);
  for (const Access access : {Access::disperse, Access::affinity, Access::local}) {
    EXPECT_EQ(draw(on(1, access), 7, 100, random), 0U);
  }
}

}  // namespace
}  // namespace vpfs::sim
