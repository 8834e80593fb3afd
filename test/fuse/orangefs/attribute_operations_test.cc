// Attributes on a mounted OrangeFS, embedded or real, beside those of a plain directory.
#include <array>
#include <cerrno>
#include <ctime>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/orangefs_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using MountOrangefsAttributes = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsAttributes,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

TEST_P(MountOrangefsAttributes, ANewOwnerClearsTheSetUserIdBitOfAFileForRootToo) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  for (const std::string& directory : {new_directory(mount), mount.scratch().string()}) {
    const auto given_away = [&](mode_t mode, uid_t uid, gid_t gid) {
      const std::string path = directory + "/file";
      make_file(path, "text");
      EXPECT_EQ(problem_of(::chmod(path.c_str(), mode)), 0);
      EXPECT_EQ(problem_of(::chown(path.c_str(), uid, gid)), 0);
      return status_of(path).st_mode & 07777U;
    };
    constexpr uid_t kSame = ~uid_t{0};
    EXPECT_EQ(given_away(06755, 1001, 1001), 0755U) << directory;
    EXPECT_EQ(given_away(06755, 1002, kSame), 0755U) << directory;
    EXPECT_EQ(given_away(06755, kSame, 1003), 0755U) << directory;
    EXPECT_EQ(given_away(06644, 1004, 1004), 02644U) << directory << ": not group-executable";
    const std::string inner = directory + "/inner";
    ASSERT_EQ(problem_of(::mkdir(inner.c_str(), 0755)), 0);
    EXPECT_EQ(problem_of(::chmod(inner.c_str(), 06755)), 0);
    EXPECT_EQ(problem_of(::chown(inner.c_str(), 1001, 1001)), 0);
    EXPECT_EQ(status_of(inner).st_mode & 07777U, 06755U) << directory;
  }
}

TEST_P(MountOrangefsAttributes, TheTimeOfALaterWriteOnAnotherNodeStays) {
  const std::vector<std::string> options = {"allow_other", "attr_timeout=0"};
  const MountProcess mount(settings(options));
  const MountProcess other(settings(options));
  const std::string path = new_directory(mount) + "/file";
  const std::string seen_by_other = other.path() / "work/file";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(::write(file, "x", 1), 1);
  const std::time_t first = std::time(nullptr);
  ASSERT_TRUE(comes_true([&] { return std::time(nullptr) > first; }));
  make_file(seen_by_other, "y");
  const std::time_t later = status_of(seen_by_other).st_mtim.tv_sec;
  EXPECT_GT(later, first);
  ::close(file);
  EXPECT_EQ(status_of(seen_by_other).st_mtim.tv_sec, later);
  EXPECT_EQ(status_of(path).st_mtim.tv_sec, later);
}

TEST_P(MountOrangefsAttributes, AWriteIsLaterThanATimeToComeThatAUserHasSet) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  const std::string path = new_directory(mount) + "/file";
  make_file(path);
  const timespec to_come = {.tv_sec = std::time(nullptr) + 100'000, .tv_nsec = 0};
  const std::array<timespec, 2> times = {to_come, to_come};
  ASSERT_EQ(problem_of(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0)), 0);
  const int file = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::write(file, "x", 1), 1);
  ::close(file);
  EXPECT_LT(status_of(path).st_mtim.tv_sec, to_come.tv_sec);
}

TEST_P(MountOrangefsAttributes, AnExtendedAttributeThatServersDoNotTakeIsRefused) {
  const MountProcess mount(settings());
  const std::string path = new_directory(mount) + "/file";
  make_file(path);
  const auto set = [&](std::size_t size) {
    const std::string value(size, 'v');
    return problem_of(::setxattr(path.c_str(), "user.x", value.data(), value.size(), 0));
  };
  EXPECT_EQ(set(65536), E2BIG);
  EXPECT_EQ(set(8193), E2BIG);
  EXPECT_EQ(set(8192), 0);
  std::string value(8192, ' ');
  EXPECT_EQ(::getxattr(path.c_str(), "user.x", value.data(), value.size()), 8192);
  EXPECT_EQ(value, std::string(8192, 'v'));
}

}  // namespace
}  // namespace vpfs::test
