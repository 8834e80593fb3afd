#include "dataserver/orangefs/handle_ranges.h"

#include <gtest/gtest.h>

#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {
namespace {

TEST(HandleRanges, CoverDisjointPartsInOrder) {
  for (const std::uint32_t servers : {1U, 2U, 3U, 7U, 64U}) {
    const HandleRanges ranges(servers);
    orangefs::Handle last = 0;
    for (std::uint32_t i = 0; i < servers; ++i) {
      EXPECT_GT(ranges.meta(i).first, last);
      EXPECT_LT(ranges.meta(i).first, ranges.meta(i).last);
      last = ranges.meta(i).last;
    }
    for (std::uint32_t i = 0; i < servers; ++i) {
      EXPECT_GT(ranges.data(i).first, last);
      last = ranges.data(i).last;
    }
    EXPECT_LT(last, 9223372036854775807U);
  }
}

TEST(HandleRanges, EveryHandleOfARangeBelongsToItsServer) {
  for (const std::uint32_t servers : {1U, 2U, 5U, 64U}) {
    const HandleRanges ranges(servers);
    for (std::uint32_t i = 0; i < servers; ++i) {
      EXPECT_EQ(ranges.server_of(ranges.meta(i).first), i);
      EXPECT_EQ(ranges.server_of(ranges.meta(i).last), i);
      EXPECT_EQ(ranges.server_of(ranges.data(i).first), i);
      EXPECT_EQ(ranges.server_of(ranges.data(i).last), i);
      EXPECT_FALSE(HandleRanges::is_datafile(ranges.meta(i).last));
      EXPECT_TRUE(HandleRanges::is_datafile(ranges.data(i).first));
    }
  }
}

TEST(HandleRanges, HandlesOutsideBelongToNoServer) {
  const HandleRanges ranges(3);
  EXPECT_EQ(ranges.server_of(0), std::nullopt);
  EXPECT_EQ(ranges.server_of(2), std::nullopt);
  EXPECT_EQ(ranges.server_of(~std::uint64_t{0}), std::nullopt);
  EXPECT_EQ(ranges.server_of(ranges.meta(2).last + 1), std::nullopt);
}

TEST(HandleRanges, TheRootBelongsToTheFirstServerAndIsNeverGivenOut) {
  for (const std::uint32_t servers : {1U, 2U, 64U}) {
    const HandleRanges ranges(servers);
    EXPECT_EQ(ranges.server_of(HandleRanges::kRoot), 0U);
    EXPECT_GT(ranges.meta_handle(0, ranges.first_serial(0)), HandleRanges::kRoot);
  }
}

TEST(HandleRanges, DatafilesOfDifferentMetadataServersNeverMeet) {
  const HandleRanges ranges(4);
  const std::uint64_t last = ranges.serial_limit() - 1;
  for (std::uint32_t data = 0; data < 4; ++data) {
    for (std::uint32_t meta = 0; meta + 1 < 4; ++meta) {
      EXPECT_LT(ranges.datafile_handle(meta, data, last),
                ranges.datafile_handle(meta + 1, data, 0));
    }
    EXPECT_EQ(ranges.server_of(ranges.datafile_handle(0, data, 0)), data);
    EXPECT_EQ(ranges.server_of(ranges.datafile_handle(3, data, last)), data);
  }
}

TEST(HandleRanges, ALaterStartNumbersPastWhatAnEarlierOneCanHaveUsed) {
  // With 64 servers a millisecond is worth 256 numbers; with fewer servers, more.
  const HandleRanges ranges(kMostServers);
  const std::int64_t start = 1'800'000'000'000;
  EXPECT_GE(ranges.first_serial(start + 1) - ranges.first_serial(start), 128U);
  EXPECT_LT(ranges.first_serial(start + 100LL * 365 * 86400 * 1000), ranges.serial_limit());
}

}  // namespace
}  // namespace vpfs::dataserver
