#include "fuse/mount_table.h"

#include <gtest/gtest.h>

namespace vpfs::fuse {
namespace {

constexpr const char* kTable =
    "22 28 0:21 / /proc rw,nosuid - proc proc rw\n"
    "30 28 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "41 30 0:40 / /mnt/v rw,nosuid,nodev master:2 - fuse.vpfs posix:/a rw,user_id=0\n"
    "42 30 0:41 / /mnt/a\\040b rw - fuse.vpfs posix:/a\\040-\\040b rw\n"
    "43 30 0:42 / /mnt/w rw - fuse.vpfs posix:/a rw\n"
    "44 43 0:43 / /mnt/w rw - tmpfs none rw";

TEST(MountTable, SaysWhatIsMountedAtADirectory) {
  EXPECT_EQ(type_mounted_at("/mnt/v", kTable), "fuse.vpfs");
  EXPECT_EQ(type_mounted_at("/mnt/a b", kTable), "fuse.vpfs");
  EXPECT_EQ(type_mounted_at("/mnt/w", kTable), "tmpfs") << "the last one is on top";
  EXPECT_EQ(type_mounted_at("/mnt", kTable), "");
  EXPECT_EQ(type_mounted_at("/mnt/v/below", kTable), "");
  EXPECT_EQ(type_mounted_at("/mnt/v", "41 30\n\n - \n"), "");
  EXPECT_EQ(type_mounted_at("/proc"), "proc");
}

}  // namespace
}  // namespace vpfs::fuse
