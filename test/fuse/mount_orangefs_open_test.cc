// Files that are open on a mounted OrangeFS, embedded or real, while names are made and lost.
#include <array>
#include <barrier>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "test/fuse/orangefs_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using MountOrangefsOpen = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsOpen,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

TEST_P(MountOrangefsOpen, AFileWithoutANameGoesOn) {
  const MountProcess mount(settings());
  const std::string directory = new_directory(mount);
  const std::string path = directory + "/file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::write(file, "before", 6), 6);
  ASSERT_EQ(problem_of(::unlink(path.c_str())), 0);
  EXPECT_TRUE(fs::is_empty(directory));
  ASSERT_EQ(::write(file, "after", 5), 5);
  std::array<char, 16> text = {};
  EXPECT_EQ(::pread(file, text.data(), text.size(), 0), 11);
  EXPECT_STREQ(text.data(), "beforeafter");
  struct stat status = {};
  EXPECT_EQ(::fstat(file, &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(::close(file), 0);
}

// Free space of the mount, in bytes.
std::uint64_t free_space(const MountProcess& mount) {
  struct statvfs status = {};
  EXPECT_EQ(::statvfs(mount.path().c_str(), &status), 0);
  return status.f_bavail * status.f_frsize;
}

// Others use the disk of a real server too, so that the file has to be large.
constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;

// Takes the file's name with `lose` while it is open. Its space must come back at its last close,
// even where the directory is gone.
void expect_space_back(const MountProcess& mount, const fs::path& path,
                       const std::function<void()>& lose) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  const std::vector<char> data(1 << 20, 'x');
  for (std::uint64_t at = 0; at < kLarge; at += data.size()) {
    ASSERT_EQ(::write(file, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  }
  lose();
  EXPECT_FALSE(fs::exists(path) && fs::file_size(path) == kLarge);
  const std::uint64_t held = free_space(mount);
  EXPECT_EQ(::close(file), 0);
  EXPECT_TRUE(comes_true([&] { return free_space(mount) >= held + kLarge / 4 * 3; }))
      << free_space(mount) << " bytes are free, " << held << " were";
}

TEST_P(MountOrangefsOpen, AFileWithoutANameLeavesNoDataBehind) {
  const MountProcess mount(settings());
  const fs::path directory = new_directory(mount);
  const fs::path path = directory / "file";
  expect_space_back(mount, path, [&] { EXPECT_EQ(problem_of(::unlink(path.c_str())), 0); });
  make_file(directory / "new", "text");
  expect_space_back(mount, path, [&] {
    EXPECT_EQ(problem_of(::rename((directory / "new").c_str(), path.c_str())), 0);
  });
  ASSERT_EQ(problem_of(::unlink(path.c_str())), 0);
  expect_space_back(mount, path, [&] {
    EXPECT_EQ(problem_of(::unlink(path.c_str())), 0);
    EXPECT_EQ(problem_of(::rmdir(directory.c_str())), 0);
  });
}

// A user that removes the name of a file has rights in its directory. Another that has the file
// open may have none there.
TEST_P(MountOrangefsOpen, AFileThatAnotherUserHasOpenLeavesNoDataBehind) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const fs::path directory = new_directory(mount);
  const fs::path path = directory / "file";
  make_file(path);
  ASSERT_EQ(problem_of(::chmod(path.c_str(), 0666)), 0);
  ASSERT_EQ(problem_of(::chmod(directory.c_str(), 0711)), 0);
  ASSERT_EQ(problem_of(::chmod(mount.path().c_str(), 0711)), 0);
  const std::uint64_t before = free_space(mount);
  ::setfsuid(1001);
  const int file = ::open(path.c_str(), O_WRONLY);
  ::setfsuid(0);
  ASSERT_GE(file, 0) << std::strerror(errno);
  const std::vector<char> data(1 << 20, 'x');
  for (std::uint64_t at = 0; at < kLarge; at += data.size()) {
    ASSERT_EQ(::write(file, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  }
  ASSERT_EQ(problem_of(::unlink(path.c_str())), 0);
  ASSERT_LT(free_space(mount), before - kLarge / 2);
  ::close(file);
  EXPECT_TRUE(comes_true([&] { return free_space(mount) + kLarge / 4 >= before; }));
}

// Two nodes make one name at the same time: one of them finds a file that it did not look at.
TEST_P(MountOrangefsOpen, AUserThatMakesAFileTooLateOpensItWithItsOwnRightsOnly) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const MountProcess other(settings());
  const fs::path directory = new_directory(mount);
  ASSERT_EQ(problem_of(::chmod(directory.c_str(), 0777)), 0);
  ASSERT_EQ(problem_of(::chmod(mount.path().c_str(), 0755)), 0);
  constexpr int kRounds = 200;
  std::barrier begin(2);
  std::vector<int> refused(kRounds, -1);
  std::vector<std::uint32_t> owners(kRounds, 0);
  std::thread user([&] {
    ::setfsuid(1001);
    for (int i = 0; i < kRounds; ++i) {
      begin.arrive_and_wait();
      const std::string path = directory / std::to_string(i);
      const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0666);
      refused[static_cast<std::size_t>(i)] = file < 0 ? errno : 0;
      struct stat status = {};
      if (file >= 0 && ::fstat(file, &status) == 0) {
        owners[static_cast<std::size_t>(i)] = status.st_uid;
      }
      ::close(file);
    }
  });
  const fs::path elsewhere = other.path() / fs::relative(directory, mount.path());
  for (int i = 0; i < kRounds; ++i) {
    begin.arrive_and_wait();
    const int file = ::open((elsewhere / std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_GE(file, 0) << std::strerror(errno);
    ::close(file);
  }
  user.join();
  for (std::size_t i = 0; i < kRounds; ++i) {
    if (refused[i] != 0) {
      EXPECT_EQ(refused[i], EACCES) << "round " << i;
    } else {
      EXPECT_EQ(owners[i], 1001U) << "round " << i;
    }
  }
}

TEST_P(MountOrangefsOpen, AFileThatIsReplacedGoesOnForThoseWhoHaveItOpen) {
  const MountProcess mount(settings());
  const std::string root = mount.path();
  make_file(root + "/file", "old text");
  const int file = ::open((root + "/file").c_str(), O_RDONLY);
  make_file(root + "/new", "new text");
  ASSERT_EQ(problem_of(::rename((root + "/new").c_str(), (root + "/file").c_str())), 0);
  std::array<char, 16> text = {};
  EXPECT_EQ(::pread(file, text.data(), text.size(), 0), 8);
  EXPECT_STREQ(text.data(), "old text");
  EXPECT_EQ(read_text(root + "/file"), "new text");
  ::close(file);
}

}  // namespace
}  // namespace vpfs::test
