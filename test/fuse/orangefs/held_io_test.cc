#include "fuse/orangefs/held_io.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/fuse/users.h"

namespace vpfs::fuse::pvfs {
namespace {

using test::kAlice;
using test::kMallory;

TEST(HeldIo, AUserMayHaveOneMoreRequestWhileItHasFewerThanAreFree) {
  HeldIo held({.requests = 10, .bytes = 0});
  std::vector<HeldPart> parts;
  for (int i = 0; i < 5; ++i) {
    parts.emplace_back(held, kMallory, true);
    EXPECT_TRUE(parts.back()) << i;
  }
  EXPECT_FALSE(HeldPart(held, kMallory, true));
  // Pages of the kernel would be lost.
  EXPECT_TRUE(HeldPart(held, kMallory, false));
  EXPECT_TRUE(HeldPart(held, kAlice, true));
  parts.pop_back();
  EXPECT_TRUE(HeldPart(held, kMallory, true));
}

TEST(HeldIo, AWriteThatMayBeShortIsCutToWholePagesThatItsUserHasRoomFor) {
  HeldIo held({.requests = 0, .bytes = 100'000});
  HeldPart first(held, kMallory, true);
  EXPECT_EQ(first.part_of(20'000), 20'000U);
  first.keep(20'000);
  HeldPart second(held, kMallory, true);
  // It may have 100,000 - 2 * 20,000.
  EXPECT_EQ(second.part_of(60'000), 60'000U);
  EXPECT_EQ(second.part_of(60'001), 57'344U);
  second.keep(57'344);
  const HeldPart third(held, kMallory, true);
  EXPECT_EQ(third.part_of(60'000), Buffer::kPage) << "one at least";
  EXPECT_EQ(third.part_of(100), 100U);
  const HeldPart other(held, kAlice, true);
  EXPECT_EQ(other.part_of(20'000), 20'000U);
}

TEST(HeldIo, WhatARequestHadComesBackWithItsEnd) {
  HeldIo held({.requests = 4, .bytes = 8192});
  {
    HeldPart part(held, kMallory, true);
    part.keep(8192);
    HeldPart moved = std::move(part);
    HeldPart assigned;
    assigned = std::move(moved);
    EXPECT_EQ(held.bytes.room_for(kAlice), 0U);
    EXPECT_EQ(held.requests.room_for(kAlice), 3U);
  }
  EXPECT_EQ(held.bytes.room_for(kAlice), 8192U);
  EXPECT_EQ(held.requests.room_for(kAlice), 4U);
}

TEST(HeldIo, AMountOfOneUserHasNoBounds) {
  HeldIo held(HeldIo::Bounds{});
  std::vector<HeldPart> parts;
  for (int i = 0; i < 1000; ++i) {
    parts.emplace_back(held, kAlice, true);
    ASSERT_TRUE(parts.back());
    EXPECT_EQ(parts.back().part_of(1U << 20), 1U << 20);
    parts.back().keep(1U << 20);
  }
}

}  // namespace
}  // namespace vpfs::fuse::pvfs
