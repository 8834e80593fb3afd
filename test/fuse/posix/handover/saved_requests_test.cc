#include "fuse/posix/handover/saved_requests.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

TEST(SavedRequests, AHeldWriteIsTheSameInTheNextProcess) {
  OpenFiles files;
  IoRequest before;
  before.unique = 42;
  before.inode = 7;
  before.process = 1234;
  before.uid = 1001;
  before.gid = 100;
  before.charged = 1002;
  before.is_counted = true;
  before.kind = IoKind::write;
  before.file = std::make_shared<OpenFile>();
  (void)files.add(before.file);
  before.asked = Bytes{5000};
  before.offset = 1U << 20U;
  before.kept = 3 * Buffer::kPage;
  before.appends = true;
  before.is_direct = true;
  before.syncs = RWF_DSYNC;
  before.data = std::make_unique<Buffer>();
  std::ranges::fill(before.data->data().first(5000), std::byte{0x5a});

  SavedState state;
  SavedData data;
  std::vector<int> pipes;
  ASSERT_TRUE(save_request(before, 0, data, pipes, state));
  const SavedData of_next(net::Descriptor(::dup(data.descriptor())));
  const std::vector<std::unique_ptr<Channel>> channels(1);
  const auto after =
      restore_request(state, {.channels = channels, .files = files, .data = of_next, .pipes = {}});
  ASSERT_TRUE(after) << after.error().message;
  const IoRequest& now = **after;
  EXPECT_EQ(now.unique, before.unique);
  EXPECT_EQ(now.inode, before.inode);
  EXPECT_EQ(now.process, before.process);
  EXPECT_EQ(now.uid, before.uid);
  EXPECT_EQ(now.gid, before.gid);
  EXPECT_EQ(now.charged, before.charged);
  EXPECT_EQ(now.is_counted, before.is_counted);
  EXPECT_EQ(now.kind, before.kind);
  EXPECT_EQ(now.file, before.file);
  EXPECT_EQ(now.asked, before.asked);
  EXPECT_EQ(now.offset, before.offset);
  EXPECT_EQ(now.kept, before.kept);
  EXPECT_EQ(now.appends, before.appends);
  EXPECT_EQ(now.is_direct, before.is_direct);
  EXPECT_EQ(now.syncs, before.syncs) << "its process would take it for durable";
  EXPECT_TRUE(std::ranges::equal(now.data->data().first(5000), before.data->data().first(5000)));
}

}  // namespace
}  // namespace vpfs::fuse
