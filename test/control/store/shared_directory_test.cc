#include "control/store/shared_directory.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kMounts =
    "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "30 21 0:40 / /srv rw shared:2 master:7 - nfs4 server:/srv rw,vers=4.2\n"
    "31 30 0:41 / /srv/data rw - pvfs2 tcp://s:3334/fs rw\n"
    "32 21 0:42 / /home rw - beegfs_nodev beegfs rw\n"
    "33 21 0:43 / /home rw - fuse.vpfs /home rw\n"
    "34 21 0:44 / /a\\040b\\134 rw - beegfs x rw\n"
    "35 21 0:45 / /short\n";

TEST(SharedDirectory, FileSystemsThatVpfsMayControlAreKnownByType) {
  for (const char* type : {"pvfs2", "beegfs", "beegfs_nodev", "fuse.vpfs", "fuse.pvfs2fuse"}) {
    EXPECT_TRUE(may_be_controlled(type)) << type;
  }
  for (const char* type :
       {"", "ext4", "xfs", "nfs", "nfs4", "tmpfs", "fuse", "fuse.sshfs", "ocfs2"}) {
    EXPECT_FALSE(may_be_controlled(type)) << type;
  }
}

TEST(SharedDirectory, APathIsOnTheFileSystemOfItsNearestMount) {
  EXPECT_EQ(file_system_of("/", kMounts), "ext4");
  EXPECT_EQ(file_system_of("/var/vpfs", kMounts), "ext4");
  EXPECT_EQ(file_system_of("/srv", kMounts), "nfs4");
  EXPECT_EQ(file_system_of("/srv/vpfs", kMounts), "nfs4");
  EXPECT_EQ(file_system_of("/srv/data/vpfs", kMounts), "pvfs2");
  EXPECT_EQ(file_system_of("/srv/database", kMounts), "nfs4");
  EXPECT_EQ(file_system_of("/srvdata", kMounts), "ext4");
  EXPECT_EQ(file_system_of("/home/vpfs", kMounts), "fuse.vpfs") << "the last of two at one place";
  EXPECT_EQ(file_system_of("/a b\\/vpfs", kMounts), "beegfs");
  EXPECT_EQ(file_system_of("/short/vpfs", kMounts), "ext4") << "a line that is not whole";
  EXPECT_EQ(file_system_of("/srv", ""), "");
}

TEST(SharedDirectory, OneThatOnlyThisUserMayWriteFits) {
  const test::TemporaryDirectory scratch;
  const auto checked = check_shared_directory(scratch.path());
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(SharedDirectory, WhyADirectoryDoesNotFitIsSaid) {
  const test::TemporaryDirectory scratch;
  const auto problem = [&](const std::string& path) {
    const auto checked = check_shared_directory(path);
    return checked ? "none" : checked.error().message;
  };
  const std::string missing = scratch.path() / "missing";
  EXPECT_THAT(problem(missing), HasSubstr(missing + ": the directory for the coordinators' state"));
  EXPECT_THAT(problem(missing), HasSubstr("No such file"));
  const std::string file = scratch.write("file", "");
  EXPECT_THAT(problem(file), HasSubstr("is a regular file, not a directory"));
  for (const mode_t mode : {0770U, 0702U, 01777U}) {
    ASSERT_EQ(::chmod(scratch.path().c_str(), mode), 0);
    EXPECT_THAT(problem(scratch.path()), HasSubstr("other users may write to it (mode")) << mode;
  }
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
  const std::filesystem::path closed = scratch.path() / "closed";
  ASSERT_EQ(::mkdir(closed.c_str(), 0555), 0);
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0711), 0);
  const test::AsNobody nobody;
  EXPECT_THAT(problem(closed), HasSubstr("this process cannot write to it: Permission denied"));
}

}  // namespace
}  // namespace vpfs::control
