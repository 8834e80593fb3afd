#include "client/orangefs/strip_walk.h"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/orangefs/striping.h"

namespace vpfs::client {
namespace {

struct Case {
  std::int64_t strip_size;
  std::uint32_t servers;
  std::int64_t offset;
  std::uint64_t size;
};

Case random_case(std::mt19937_64& random) {
  return {.strip_size = static_cast<std::int64_t>(1 + random() % 64),
          .servers = static_cast<std::uint32_t>(1 + random() % 7),
          .offset = static_cast<std::int64_t>(random() % 2000),
          .size = random() % 2000};
}

TEST(StripWalk, PiecesOfAllServersCoverEveryByteOnceWhereTheDistributionPutsIt) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const Case each = random_case(random);
    const orangefs::Distribution stripes = orangefs::SimpleStripe{.strip_size = each.strip_size};
    std::vector<int> covered(each.size, 0);
    for (std::uint32_t nr = 0; nr < each.servers; ++nr) {
      const orangefs::Placement placement{.server_nr = nr, .server_ct = each.servers};
      std::int64_t physical = *orangefs::physical_offset(stripes, placement, each.offset);
      StripWalk walk(each.strip_size, placement, each.offset, each.size);
      const std::uint64_t most = 1 + random() % 100;
      while (const auto piece = walk.next(most)) {
        ASSERT_LE(piece->size, most);
        ASSERT_LE(piece->position + piece->size, each.size);
        const auto logical = each.offset + static_cast<std::int64_t>(piece->position);
        ASSERT_EQ(*orangefs::physical_offset(stripes, placement, logical), physical);
        physical += static_cast<std::int64_t>(piece->size);
        for (std::uint64_t i = 0; i < piece->size; ++i) ++covered[piece->position + i];
      }
      const auto end = each.offset + static_cast<std::int64_t>(each.size);
      ASSERT_EQ(physical, *orangefs::physical_offset(stripes, placement, end));
    }
    for (const int count : covered) ASSERT_EQ(count, 1);
  }
}

TEST(StripWalk, OneDatafileHoldsEverythingWithoutStripes) {
  StripWalk walk(0, {.server_nr = 0, .server_ct = 1}, 1000, 300);
  const auto first = walk.next(200);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->position, 0U);
  EXPECT_EQ(first->size, 200U);
  EXPECT_EQ(walk.next(200)->size, 100U);
  EXPECT_FALSE(walk.next(200));
}

TEST(LogicalEnd, IsTheInverseOfThePhysicalOffset) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    const Case each = random_case(random);
    const auto end = static_cast<std::int64_t>(each.size);
    const orangefs::Distribution stripes = orangefs::SimpleStripe{.strip_size = each.strip_size};
    std::int64_t found = 0;
    for (std::uint32_t nr = 0; nr < each.servers; ++nr) {
      const orangefs::Placement placement{.server_nr = nr, .server_ct = each.servers};
      const std::int64_t size = *orangefs::physical_offset(stripes, placement, end);
      found = std::max(found, logical_end(each.strip_size, placement, size));
    }
    EXPECT_EQ(found, end);
  }
}

TEST(LogicalEnd, IsBoundedWhateverAServerSays) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  for (const std::uint32_t servers : {1U, 2U, 1000U}) {
    const orangefs::Placement last{.server_nr = servers - 1, .server_ct = servers};
    EXPECT_EQ(logical_end(65536, last, kMost), kLargest);
    EXPECT_EQ(logical_end(kMost, last, kMost), kLargest);
    EXPECT_EQ(logical_end(65536, last, -1), -1);
  }
  EXPECT_EQ(logical_end(0, {.server_nr = 0, .server_ct = 1}, kMost), kLargest);
}

}  // namespace
}  // namespace vpfs::client
