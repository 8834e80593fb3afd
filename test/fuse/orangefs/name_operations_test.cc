// Names on a mounted OrangeFS, embedded or real, of several users.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/orangefs_site.h"

namespace vpfs::test {
namespace {

using MountOrangefsNames = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsNames,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

TEST_P(MountOrangefsNames, ADirectoryOfAnotherUserIsNotReplacedWhileItHasEntries) {
  const MountProcess mount(settings());
  std::filesystem::permissions(mount.scratch(), std::filesystem::perms::all);
  const std::string shared = new_directory(mount);
  ASSERT_EQ(problem_of(::chmod(shared.c_str(), 0777)), 0);
  const std::string full = shared + "/full";
  const std::string moved = shared + "/moved";
  ASSERT_EQ(problem_of(::mkdir(full.c_str(), 0700)), 0);
  make_file(full + "/file", "text");
  ASSERT_EQ(problem_of(::chown(full.c_str(), 1001, 1001)), 0);
  const auto replace = [&] {
    return as_user(1002, {}, [&] { return problem_of(::rename(moved.c_str(), full.c_str())); });
  };
  ASSERT_EQ(as_user(1002, {}, [&] { return problem_of(::mkdir(moved.c_str(), 0755)); }), 0);
  const ino_t number = status_of(moved).st_ino;
  EXPECT_EQ(replace(), ENOTEMPTY);
  const MountProcess other(settings());
  EXPECT_EQ(read_text(other.path() / "work/full/file"), "text");
  EXPECT_EQ(status_of(other.path() / "work/moved").st_ino, number);
  ASSERT_EQ(problem_of(::unlink((full + "/file").c_str())), 0);
  EXPECT_EQ(replace(), 0) << "as a plain directory is";
  EXPECT_EQ(status_of(full).st_ino, number);
  EXPECT_EQ(problem_of(::access(moved.c_str(), F_OK)), ENOENT);
}

}  // namespace
}  // namespace vpfs::test
