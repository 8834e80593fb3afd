// Names and attributes on a mount are those of the directory below.
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using MountFiles = MountTest;
namespace fs = std::filesystem;

// Everything below a directory: path -> type, mode, owner, size, links, target.
std::map<std::string, std::string> tree_of(const fs::path& root) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    struct stat its = {};
    EXPECT_EQ(::lstat(entry.path().c_str(), &its), 0);
    std::string text = std::to_string(its.st_mode) + " " + std::to_string(its.st_uid) + " " +
                       std::to_string(its.st_gid) + " " + std::to_string(its.st_nlink) + " " +
                       std::to_string(its.st_ino) + " " + std::to_string(its.st_mtim.tv_nsec);
    if (!S_ISDIR(its.st_mode)) text += " " + std::to_string(its.st_size);
    if (entry.is_symlink()) text += " -> " + fs::read_symlink(entry.path()).string();
    tree[fs::relative(entry.path(), root)] = text;
  }
  return tree;
}

// Does the same random operations in two directories, and tells what each said.
class Operations {
 public:
  explicit Operations(fs::path root) : root_(std::move(root)), random_(7) {}

  std::string next() {
    const std::string a = name();
    const std::string b = name();
    switch (random_() % 14) {
      case 0:
        return say("mkdir", ::mkdir(path(a).c_str(), 0700 + random_() % 64));
      case 1:
        return say("rmdir", ::rmdir(path(a).c_str()));
      case 2:
        return say("unlink", ::unlink(path(a).c_str()));
      case 3:
        return say("rename", ::rename(path(a).c_str(), path(b).c_str()));
      case 4:
        return say("symlink", ::symlink(b.c_str(), path(a).c_str()));
      case 5:
        return say("link", ::link(path(a).c_str(), path(b).c_str()));
      case 6:
        return say("chmod", ::chmod(path(a).c_str(), static_cast<mode_t>(random_() % 4096)));
      case 7:
        return say("chown", ::lchown(path(a).c_str(), random_() % 5, random_() % 5));
      case 8:
        return say("truncate", ::truncate(path(a).c_str(), static_cast<off_t>(random_() % 10000)));
      case 9:
        return say("mkfifo", ::mkfifo(path(a).c_str(), 0600));
      case 10:
        return say("setxattr", ::setxattr(path(a).c_str(), "user.x", b.data(), b.size(), 0));
      case 11: {
        const std::array<timespec, 2> times = {timespec{.tv_sec = 5, .tv_nsec = 7},
                                               timespec{.tv_sec = 9, .tv_nsec = 11}};
        return say("utimes",
                   ::utimensat(AT_FDCWD, path(a).c_str(), times.data(), AT_SYMLINK_NOFOLLOW));
      }
      default: {
        const int file = ::open(path(a).c_str(), O_WRONLY | O_CREAT | O_NONBLOCK, 0640);
        const std::string said = say("open", file < 0 ? -1 : 0);
        if (file >= 0) ::close(file);
        return said;
      }
    }
  }

 private:
  std::string name() {
    static const std::array<std::string, 3> kDirectories = {"", "d1/", "d1/d2/"};
    static const std::array<std::string, 6> kNames = {"a", "b", "c", "d1", "d2", "e"};
    return kDirectories.at(random_() % 3) + kNames.at(random_() % 6);
  }
  fs::path path(const std::string& name) const { return root_ / name; }
  static std::string say(const std::string& what, int result) {
    return what + ": " + (result == 0 ? "done" : std::strerror(errno));
  }

  const fs::path root_;
  std::mt19937 random_;
};

TEST_F(MountFiles, AreMadeMovedAndRemovedAsInAPlainDirectory) {
  const MountProcess mount;
  const fs::path plain = mount.scratch() / "plain";
  fs::create_directory(plain);
  Operations here(mount.path());
  Operations there(plain);
  for (int i = 0; i < 3000; ++i) {
    const std::string wanted = there.next();
    ASSERT_EQ(here.next(), wanted) << "operation " << i;
  }
  // The caches of the kernel must not tell another story than the directory below.
  EXPECT_EQ(tree_of(mount.path()), tree_of(mount.below()));
  std::vector<std::string> names_here;
  std::vector<std::string> names_there;
  for (const auto& [name, its] : tree_of(mount.path())) names_here.push_back(name);
  for (const auto& [name, its] : tree_of(plain)) names_there.push_back(name);
  EXPECT_EQ(names_here, names_there);
  EXPECT_GT(names_here.size(), 4U);
}

TEST_F(MountFiles, ExtendedAttributesAreThoseBelow) {
  const MountProcess mount;
  const std::string file = mount.path() / "file";
  std::ofstream(file) << "x";
  ASSERT_EQ(::setxattr(file.c_str(), "user.one", "1", 1, XATTR_CREATE), 0);
  EXPECT_EQ(::setxattr(file.c_str(), "user.one", "2", 1, XATTR_CREATE), -1);
  EXPECT_EQ(errno, EEXIST);
  std::array<char, 64> value = {};
  EXPECT_EQ(::getxattr((mount.below() / "file").c_str(), "user.one", value.data(), value.size()),
            1);
  EXPECT_EQ(value[0], '1');
  EXPECT_EQ(::getxattr(file.c_str(), "user.one", nullptr, 0), 1);
  EXPECT_EQ(::getxattr(file.c_str(), "user.none", nullptr, 0), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(::listxattr(file.c_str(), value.data(), value.size()), 9);
  EXPECT_STREQ(value.data(), "user.one");
  EXPECT_EQ(::removexattr(file.c_str(), "user.one"), 0);
  EXPECT_EQ(::listxattr(file.c_str(), nullptr, 0), 0);
}

TEST_F(MountFiles, ADirectoryOfManyEntriesIsListedWhole) {
  const MountProcess mount;
  constexpr int kEntries = 20'000;
  for (int i = 0; i < kEntries; ++i) {
    const int file = ::open((mount.below() / std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0644);
    ASSERT_GE(file, 0);
    ::close(file);
  }
  std::vector<bool> seen(kEntries);
  int count = 0;
  for (const auto& entry : fs::directory_iterator(mount.path())) {
    const int number = std::stoi(entry.path().filename());
    EXPECT_FALSE(seen.at(static_cast<std::size_t>(number)));
    seen.at(static_cast<std::size_t>(number)) = true;
    ++count;
  }
  EXPECT_EQ(count, kEntries);
}

TEST_F(MountFiles, AListingCanBeGoneOnWith) {
  const MountProcess mount;
  for (int i = 0; i < 500; ++i) std::ofstream(mount.below() / std::to_string(i)) << i;
  DIR* const directory = ::opendir(mount.path().c_str());
  ASSERT_NE(directory, nullptr);
  std::vector<std::string> all;
  std::vector<long> places;
  for (const dirent* each = ::readdir(directory); each != nullptr; each = ::readdir(directory)) {
    all.emplace_back(each->d_name);
    places.push_back(::telldir(directory));
  }
  ASSERT_EQ(all.size(), 502U);
  for (const std::size_t from : {400U, 17U, 250U}) {
    ::seekdir(directory, places[from]);
    const dirent* const next = ::readdir(directory);
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->d_name, all[from + 1]);
  }
  ::closedir(directory);
}

TEST_F(MountFiles, AFileWithoutANameGoesOn) {
  const MountProcess mount;
  const std::string path = mount.path() / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::write(file, "before", 6), 6);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::write(file, "after", 5), 5);
  std::array<char, 16> text = {};
  EXPECT_EQ(::pread(file, text.data(), text.size(), 0), 11);
  EXPECT_STREQ(text.data(), "beforeafter");
  struct stat its = {};
  EXPECT_EQ(::fstat(file, &its), 0);
  EXPECT_EQ(its.st_nlink, 0U);
  EXPECT_EQ(::close(file), 0);
  EXPECT_FALSE(fs::exists(mount.below() / "file"));
}

TEST_F(MountFiles, TheFileSystemIsAsLargeAsTheOneBelow) {
  const MountProcess mount;
  struct statvfs here = {};
  struct statvfs there = {};
  ASSERT_EQ(::statvfs(mount.path().c_str(), &here), 0);
  ASSERT_EQ(::statvfs(mount.below().c_str(), &there), 0);
  EXPECT_EQ(here.f_blocks, there.f_blocks);
  EXPECT_EQ(here.f_bsize, there.f_bsize);
}

TEST_F(MountFiles, OtherUsersMayWhatTheyMayBelow) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  const auto make = [&](const std::string& name, uid_t uid, gid_t gid, mode_t mode) {
    const std::string path = mount.below() / name;
    EXPECT_EQ(::mkdir(path.c_str(), mode), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(::chown(path.c_str(), uid, gid), 0);
  };
  make("own", 1001, 1001, 0700);
  make("of_group", 0, 2002, 0770);
  make("shared", 0, 2002, 02777);
  const auto create = [&](const std::string& name) {
    return [path = (mount.path() / name).string()] {
      const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_EXCL, 0666);
      return file < 0 ? errno : (::close(file), 0);
    };
  };
  EXPECT_EQ(as_user(1001, {}, create("own/a")), 0);
  EXPECT_EQ(as_user(1002, {}, create("own/b")), EACCES);
  EXPECT_EQ(as_user(1001, {}, create("of_group/a")), EACCES);
  EXPECT_EQ(as_user(1001, {2002}, create("of_group/b")), 0) << "by a supplementary group";
  EXPECT_EQ(as_user(1002, {}, create("shared/a")), 0);
  struct stat its = {};
  ASSERT_EQ(::stat((mount.below() / "shared/a").c_str(), &its), 0);
  EXPECT_EQ(its.st_uid, 1002U);
  EXPECT_EQ(its.st_gid, 2002U) << "that of the directory";
  ASSERT_EQ(::stat((mount.below() / "own/a").c_str(), &its), 0);
  EXPECT_EQ(its.st_uid, 1001U);
  EXPECT_EQ(its.st_gid, 1001U);
  // What one user has looked up is not open for others.
  EXPECT_EQ(
      as_user(1002, {},
              [&] { return ::access((mount.path() / "own/a").c_str(), F_OK) == 0 ? 0 : errno; }),
      EACCES);
}

// The kernel closes files of the old program while it locks what /proc shows of the process.
TEST_F(MountFiles, AreClosedByAProcessThatBecomesAnotherProgram) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(1001) != 0 || ::setuid(1001) != 0) ::_exit(2);
    const int file = ::open((mount.path() / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    // Longer than a mount believes what it knows of a process.
    const timespec while_it_forgets = {.tv_sec = 1, .tv_nsec = 300'000'000};
    if (::write(file, "text", 4) == 4) ::nanosleep(&while_it_forgets, nullptr);
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  int status = -1;
  EXPECT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; })) << "hangs";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(MountFiles, AWriteByAnotherUserClearsTheSetUserIdBit) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string path = mount.path() / "file";
  std::ofstream(path) << "x";
  ASSERT_EQ(::chmod(path.c_str(), 04777), 0);
  EXPECT_EQ(as_user(1001, {},
                    [&] {
                      const int file = ::open(path.c_str(), O_WRONLY);
                      return file >= 0 && ::write(file, "y", 1) == 1 ? 0 : errno;
                    }),
            0);
  struct stat its = {};
  ASSERT_EQ(::stat(path.c_str(), &its), 0);
  EXPECT_EQ(its.st_mode & 07777U, 0777U);
}

// A file that all may write, with CAP_NET_RAW for those that run it. False: not here.
bool make_capable(const std::string& path, uid_t owner) {
  vfs_cap_data capabilities = {};
  capabilities.magic_etc = VFS_CAP_REVISION_2;
  capabilities.data[0].permitted = 1U << CAP_NET_RAW;
  std::ofstream(path) << "program";
  EXPECT_EQ(::chown(path.c_str(), owner, 0), 0);
  EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
  return ::setxattr(path.c_str(), XATTR_NAME_CAPS, &capabilities, XATTR_CAPS_SZ_2, 0) == 0;
}

// On a local disk the kernel takes the capabilities away, whoever writes.
TEST_F(MountFiles, CapabilitiesOfAProgramGoWhenAUserChangesIt) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  const auto expect_gone_after = [&](const std::string& what, auto act) {
    const fs::path below = mount.below() / what;
    ASSERT_TRUE(make_capable(below, 1001));
    EXPECT_EQ(as_user(1001, {2002}, [&] { return act(mount.path() / what) ? 0 : errno; }), 0)
        << what;
    EXPECT_EQ(::getxattr(below.c_str(), XATTR_NAME_CAPS, nullptr, 0), -1) << what;
  };
  if (!make_capable(mount.below() / "probe", 0)) GTEST_SKIP() << "files have no capabilities here";
  expect_gone_after("write", [](const fs::path& path) {
    const int file = ::open(path.c_str(), O_WRONLY);
    return file >= 0 && ::write(file, "y", 1) == 1;
  });
  expect_gone_after("cut", [](const fs::path& path) { return ::truncate(path.c_str(), 1) == 0; });
  expect_gone_after("group",
                    [](const fs::path& path) { return ::chown(path.c_str(), 1001, 2002) == 0; });
}

// To ask for it is another matter.
TEST_F(MountFiles, CapabilitiesOfAProgramAreNotRemovedForAUser) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string below = mount.below() / "program";
  if (!make_capable(below, 1001)) GTEST_SKIP() << "files have no capabilities here";
  EXPECT_EQ(as_user(1001, {},
                    [&] {
                      const std::string path = mount.path() / "program";
                      return ::removexattr(path.c_str(), XATTR_NAME_CAPS) == 0 ? 0 : errno;
                    }),
            EPERM);
  EXPECT_GT(::getxattr(below.c_str(), XATTR_NAME_CAPS, nullptr, 0), 0);
}

TEST_F(MountFiles, AProgramThatMayNotBeReadCanBeRun) {
  const MountProcess mount;
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const std::string path = mount.path() / "program";
  fs::copy_file("/bin/true", mount.below() / "program");
  const auto read = [&] { return ::open(path.c_str(), O_RDONLY) >= 0 ? 0 : errno; };
  const auto run = [&] {
    ::execl(path.c_str(), "true", nullptr);
    return errno;
  };
  ASSERT_EQ(::chmod(path.c_str(), 0001), 0);
  EXPECT_EQ(as_user(1001, {}, read), EACCES);
  EXPECT_EQ(as_user(1001, {}, run), 0);
  ASSERT_EQ(::chown(path.c_str(), 0, 2002), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0010), 0);
  EXPECT_EQ(as_user(1001, {}, run), EACCES);
  EXPECT_EQ(as_user(1001, {2002}, run), 0) << "by a supplementary group";
  EXPECT_EQ(as_user(1001, {2002}, read), EACCES);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(as_user(1001, {}, run), EACCES);
}

}  // namespace
}  // namespace vpfs::test
