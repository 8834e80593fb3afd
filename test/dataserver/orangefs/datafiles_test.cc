#include "dataserver/orangefs/datafiles.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/units.h"
#include "dataserver/store/memory_bstream_store.h"

namespace vpfs::dataserver {
namespace {

class DatafilesTest : public ::testing::Test {
 protected:
  MemoryBstreamStore store_{Bytes{kMiB}};
  Datafiles datafiles_{store_};
};

TEST_F(DatafilesTest, OneThatWasNeverWrittenIsEmpty) {
  EXPECT_EQ(datafiles_.size(7), 0);
  EXPECT_TRUE(datafiles_.truncate(7, 100));
  EXPECT_EQ(datafiles_.size(7), 100);
}

TEST_F(DatafilesTest, OneThatWasRemovedDoesNotExist) {
  ASSERT_TRUE(datafiles_.truncate(7, 100));
  ASSERT_TRUE(datafiles_.remove(7));
  EXPECT_EQ(datafiles_.size(7), refuse(ENOENT));
  EXPECT_EQ(datafiles_.truncate(7, 5), refuse(ENOENT));
  EXPECT_TRUE(datafiles_.remove(7));
  EXPECT_EQ(datafiles_.size(8), 0);
}

TEST_F(DatafilesTest, ThoseRemovedLongAgoAreForgotten) {
  constexpr std::uint64_t kKept = 65536;
  for (std::uint64_t handle = 0; handle <= kKept; ++handle) ASSERT_TRUE(datafiles_.remove(handle));
  EXPECT_EQ(datafiles_.size(0), 0);
  EXPECT_EQ(datafiles_.size(1), refuse(ENOENT));
  EXPECT_EQ(datafiles_.size(kKept), refuse(ENOENT));
}

}  // namespace
}  // namespace vpfs::dataserver
