#include "sim/cluster/placement/device_lists.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

TEST(DeviceListsTest, WhatComesEarlyWaitsForAllBefore) {
  DeviceLists lists(2);
  std::string served;
  const auto first = lists.add(0);
  const auto other = lists.add(1);
  const auto second = lists.add(0);
  const auto third = lists.add(0);
  lists.come(third, [&] { served += "3"; });
  lists.come(second, [&] { served += "2"; });
  EXPECT_EQ(served, "");
  lists.come(other, [&] { served += "o"; });
  EXPECT_EQ(served, "o") << "another device does not wait";
  lists.come(first, [&] { served += "1"; });
  EXPECT_EQ(served, "o123");
}

TEST(DeviceListsTest, AServedAccessMayBringTheNextOne) {
  DeviceLists lists(1);
  std::string served;
  const auto first = lists.add(0);
  const auto second = lists.add(0);
  const auto third = lists.add(0);
  lists.come(third, [&] { served += "3"; });
  lists.come(first, [&] {
    served += "1";
    lists.come(second, [&] { served += "2"; });
  });
  EXPECT_EQ(served, "123");
}

}  // namespace
}  // namespace vpfs::sim
