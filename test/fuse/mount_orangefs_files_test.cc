// Names and attributes on a mounted OrangeFS, embedded or real.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/mount_site.h"
#include "test/fuse/orangefs_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using MountOrangefsFiles = OrangefsMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsFiles,
                         ::testing::Values(Servers::embedded, Servers::real), name_of_servers);

constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE

TEST_P(MountOrangefsFiles, AreMadeMovedAndRemoved) {
  const MountProcess mount(settings());
  const std::string root = new_directory(mount);
  ASSERT_EQ(problem_of(::mkdir((root + "/d").c_str(), 0750)), 0);
  EXPECT_EQ(status_of(root + "/d").st_mode, static_cast<mode_t>(S_IFDIR | 0750));
  make_file(root + "/d/a", "content of a");
  make_file(root + "/d/b", "b");
  EXPECT_EQ(problem_of(::mkdir((root + "/d").c_str(), 0700)), EEXIST);
  EXPECT_EQ(problem_of(::rmdir((root + "/d").c_str())), ENOTEMPTY);
  EXPECT_EQ(problem_of(::unlink((root + "/d").c_str())), EISDIR);
  EXPECT_EQ(problem_of(::rmdir((root + "/d/a").c_str())), ENOTDIR);
  EXPECT_EQ(problem_of(::unlink((root + "/none").c_str())), ENOENT);
  EXPECT_EQ(problem_of(::renameat2(AT_FDCWD, (root + "/d/a").c_str(), AT_FDCWD,
                                   (root + "/d/b").c_str(), kNoReplace)),
            EEXIST);
  EXPECT_EQ(problem_of(::rename((root + "/d/a").c_str(), (root + "/d/b").c_str())), 0);
  EXPECT_EQ(read_text(root + "/d/b"), "content of a");
  EXPECT_FALSE(fs::exists(root + "/d/a"));
  EXPECT_EQ(problem_of(::rename((root + "/d/b").c_str(), (root + "/c").c_str())), 0);
  EXPECT_EQ(problem_of(::rename((root + "/d").c_str(), (root + "/d/below").c_str())), EINVAL);
  EXPECT_EQ(problem_of(::rmdir((root + "/d").c_str())), 0);
  EXPECT_EQ(problem_of(::unlink((root + "/c").c_str())), 0);
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_P(MountOrangefsFiles, LinksLeadWhereTheySay) {
  const MountProcess mount(settings());
  const std::string root = mount.path();
  make_file(root + "/file", "text");
  ASSERT_EQ(problem_of(::symlink("file", (root + "/link").c_str())), 0);
  EXPECT_EQ(read_text(root + "/link"), "text");
  EXPECT_EQ(fs::read_symlink(root + "/link"), "file");
  EXPECT_TRUE(S_ISLNK(status_of(root + "/link").st_mode));
  EXPECT_EQ(status_of(root + "/link").st_size, 4);
  EXPECT_EQ(problem_of(::unlink((root + "/link").c_str())), 0);
  EXPECT_EQ(read_text(root + "/file"), "text");
}

TEST_P(MountOrangefsFiles, WhatOrangefsDoesNotHaveIsRefused) {
  const MountProcess mount(settings());
  const std::string root = mount.path();
  make_file(root + "/file");
  EXPECT_EQ(problem_of(::link((root + "/file").c_str(), (root + "/other").c_str())), EPERM);
  EXPECT_EQ(problem_of(::mkfifo((root + "/pipe").c_str(), 0600)), EPERM);
  const int file = ::open((root + "/file").c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  EXPECT_EQ(problem_of(::flock(file, LOCK_EX)), ENOLCK);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  EXPECT_EQ(problem_of(::fcntl(file, F_SETLK, &lock)), ENOLCK);
  EXPECT_EQ(problem_of(::fallocate(file, 0, 0, 4096)), EOPNOTSUPP);
  EXPECT_EQ(problem_of(::fsetxattr(file, "security.x", "1", 1, 0)), EOPNOTSUPP);
  ::close(file);
  const std::string long_name = root + "/" + std::string(256, 'n');
  EXPECT_EQ(problem_of(::mkdir(long_name.c_str(), 0700)), ENAMETOOLONG);
}

TEST_P(MountOrangefsFiles, LocksOfOneMountAreThereIfAskedFor) {
  const MountProcess mount(settings({"allow_other", "locks=local"}));
  const int one = ::open((mount.path() / "file").c_str(), O_RDWR | O_CREAT, 0600);
  const int two = ::open((mount.path() / "file").c_str(), O_RDWR);
  EXPECT_EQ(problem_of(::flock(one, LOCK_EX | LOCK_NB)), 0);
  EXPECT_EQ(problem_of(::flock(two, LOCK_EX | LOCK_NB)), EWOULDBLOCK);
  ::close(one);
  EXPECT_EQ(problem_of(::flock(two, LOCK_EX | LOCK_NB)), 0);
  ::close(two);
}

TEST_P(MountOrangefsFiles, AttributesAreWhatTheyWereSetTo) {
  const MountProcess mount(settings());
  const std::string path = mount.path() / "file";
  make_file(path, "12345");
  ASSERT_EQ(problem_of(::chmod(path.c_str(), 0640)), 0);
  ASSERT_EQ(problem_of(::chown(path.c_str(), 1001, 2002)), 0);
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1'000'000, .tv_nsec = 0},
                                         timespec{.tv_sec = 2'000'000, .tv_nsec = 0}};
  ASSERT_EQ(problem_of(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0)), 0);
  const MountProcess other(settings());
  for (const std::string& seen : {path, (other.path() / "file").string()}) {
    const struct stat status = status_of(seen);
    EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFREG | 0640));
    EXPECT_EQ(status.st_uid, 1001U);
    EXPECT_EQ(status.st_gid, 2002U);
    EXPECT_EQ(status.st_atim.tv_sec, 1'000'000);
    EXPECT_EQ(status.st_mtim.tv_sec, 2'000'000);
    EXPECT_EQ(status.st_size, 5);
  }
}

TEST_P(MountOrangefsFiles, AUserThatMayWriteAFileMaySetItsTimesToNow) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  fs::permissions(mount.scratch(), fs::perms::all);
  const auto make = [&](const std::string& name, mode_t mode) {
    std::string path = mount.path() / name;
    make_file(path, "text");
    EXPECT_EQ(problem_of(::chmod(path.c_str(), mode)), 0);
    const std::array<timespec, 2> old = {timespec{.tv_sec = 1000, .tv_nsec = 0},
                                         timespec{.tv_sec = 2000, .tv_nsec = 0}};
    EXPECT_EQ(problem_of(::utimensat(AT_FDCWD, path.c_str(), old.data(), 0)), 0);
    return path;
  };
  const auto set_times = [](const std::string& path, const timespec& time) {
    return as_user(1001, {}, [&] {
      const std::array<timespec, 2> times = {time, time};
      return problem_of(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0));
    });
  };
  const timespec now = {.tv_sec = 0, .tv_nsec = UTIME_NOW};
  const timespec then = {.tv_sec = 5000, .tv_nsec = 0};
  const std::string writable = make("writable", 0666);
  const std::string readable = make("readable", 0644);
  EXPECT_EQ(set_times(writable, then), EPERM);
  EXPECT_EQ(set_times(readable, then), EPERM);
  EXPECT_EQ(set_times(readable, now), EACCES);
  EXPECT_EQ(status_of(writable).st_mtim.tv_sec, 2000);
  EXPECT_EQ(set_times(writable, now), 0);
  EXPECT_NEAR(static_cast<double>(status_of(writable).st_atim.tv_sec),
              static_cast<double>(std::time(nullptr)), 30);
  EXPECT_NEAR(static_cast<double>(status_of(writable).st_mtim.tv_sec),
              static_cast<double>(std::time(nullptr)), 30);
  EXPECT_EQ(status_of(readable).st_mtim.tv_sec, 2000);
}

// As with other file systems of Linux.
TEST_P(MountOrangefsFiles, TimesThatServersCannotKeepBecomeTheNearestOnes) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  const std::string path = mount.path() / "file";
  make_file(path);
  const auto kept = [&](time_t seconds) {
    const timespec time = {.tv_sec = seconds, .tv_nsec = 0};
    const std::array<timespec, 2> times = {time, time};
    EXPECT_EQ(problem_of(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0)), 0);
    const struct stat status = status_of(path);
    EXPECT_EQ(std::max<time_t>(status.st_atim.tv_sec, 1), status.st_mtim.tv_sec);
    return status.st_mtim.tv_sec;
  };
  EXPECT_EQ(kept(1), 1);
  EXPECT_EQ(kept(0), 1) << "real servers cannot keep a change in the first second";
  EXPECT_EQ(kept(-1), 1);
  EXPECT_EQ(kept(-100'000'000'000), 1);
  EXPECT_EQ(kept(3'000'000'000), 3'000'000'000);
  EXPECT_EQ(kept(4'294'967'295), 4'294'967'295);
  EXPECT_EQ(kept(4'294'967'296), 4'294'967'295);
  EXPECT_EQ(kept(100'000'000'000), 4'294'967'295);
}

TEST_P(MountOrangefsFiles, ANewOwnerIsSeenInTheTimeOfALink) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  const std::string path = mount.path() / "link";
  ASSERT_EQ(problem_of(::symlink("nowhere", path.c_str())), 0);
  const time_t before = status_of(path).st_ctim.tv_sec;
  ASSERT_TRUE(comes_true([&] { return std::time(nullptr) > before + 1; }));
  ASSERT_EQ(problem_of(::lchown(path.c_str(), 1001, 1001)), 0);
  EXPECT_GT(status_of(path).st_ctim.tv_sec, before);
}

TEST_P(MountOrangefsFiles, AWriteIsSeenInTheTimeOfAFile) {
  const MountProcess mount(settings({"allow_other", "attr_timeout=0"}));
  const MountProcess other(settings({"allow_other", "attr_timeout=0"}));
  const std::string path = mount.path() / "file";
  make_file(path);
  const std::array<timespec, 2> old = {timespec{.tv_sec = 1, .tv_nsec = 0},
                                       timespec{.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(problem_of(::utimensat(AT_FDCWD, path.c_str(), old.data(), 0)), 0);
  const int file = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::write(file, "x", 1), 1);
  EXPECT_GT(status_of(path).st_mtim.tv_sec, 1'000'000) << "before it is closed";
  ::close(file);
  EXPECT_GT(status_of(other.path() / "file").st_mtim.tv_sec, 1'000'000);
  // A time that is set after the write stays.
  const int again = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::write(again, "y", 1), 1);
  ASSERT_EQ(problem_of(::futimens(again, old.data())), 0);
  ::close(again);
  EXPECT_EQ(status_of(other.path() / "file").st_mtim.tv_sec, 1);
}

TEST_P(MountOrangefsFiles, OtherUsersMayWhatModesSay) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const auto make = [&](const std::string& name, uid_t uid, gid_t gid, mode_t mode) {
    const std::string path = mount.path() / name;
    EXPECT_EQ(problem_of(::mkdir(path.c_str(), mode)), 0);
    EXPECT_EQ(problem_of(::chown(path.c_str(), uid, gid)), 0);
    EXPECT_EQ(problem_of(::chmod(path.c_str(), mode)), 0);
  };
  make("own", 1001, 1001, 0700);
  make("of_group", 0, 2002, 0770);
  make("shared", 0, 2002, 02777);
  const auto create_in = [&](const std::string& directory) {
    return [path = (mount.path() / directory / "file").string()] {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
      return file < 0 ? errno : ::write(file, "x", 1) == 1 ? 0 : errno;
    };
  };
  EXPECT_EQ(as_user(1001, {}, create_in("own")), 0);
  EXPECT_EQ(as_user(1002, {}, create_in("own")), EACCES);
  EXPECT_EQ(as_user(1002, {}, create_in("of_group")), EACCES);
  EXPECT_EQ(as_user(1003, {2002}, create_in("of_group")), 0);
  EXPECT_EQ(as_user(1004, {}, create_in("shared")), 0);
  EXPECT_EQ(status_of(mount.path() / "own/file").st_uid, 1001U);
  EXPECT_EQ(status_of(mount.path() / "shared/file").st_gid, 2002U) << "the directory's group";
  EXPECT_EQ(as_user(1002, {},
                    [path = (mount.path() / "own/file").string()] {
                      return problem_of(::chmod(path.c_str(), 0777));
                    }),
            EACCES);
}

TEST_P(MountOrangefsFiles, AProcessThatMakesAFileMayWriteItWhateverItsModeIs) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string directory = new_directory(mount);
  ASSERT_EQ(problem_of(::chmod(directory.c_str(), 01777)), 0);
  EXPECT_EQ(as_user(1001, {},
                    [path = directory + "/file"] {
                      const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0444);
                      if (file < 0 || ::write(file, "text", 4) != 4) return errno;
                      return ::open(path.c_str(), O_WRONLY) < 0 && errno == EACCES ? 0 : 1;
                    }),
            0);
  EXPECT_EQ(read_text(directory + "/file"), "text");
  EXPECT_EQ(status_of(directory + "/file").st_uid, 1001U);
}

TEST_P(MountOrangefsFiles, AWriteByAnotherUserClearsTheSetUserIdBit) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string path = mount.path() / "file";
  make_file(path, "text");
  ASSERT_EQ(problem_of(::chmod(path.c_str(), 06777)), 0);
  EXPECT_EQ(as_user(1001, {},
                    [&] {
                      const int file = ::open(path.c_str(), O_WRONLY);
                      return file >= 0 && ::write(file, "x", 1) == 1 ? 0 : errno;
                    }),
            0);
  const MountProcess other(settings());
  EXPECT_EQ(status_of(other.path() / "file").st_mode, static_cast<mode_t>(S_IFREG | 0777));
}

TEST_P(MountOrangefsFiles, AWriteDoesNotUndoAChangeOfTheMode) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string path = new_directory(mount) + "/file";
  make_file(path, "text");
  ASSERT_EQ(problem_of(::chmod(path.c_str(), 04777)), 0);
  const int file = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(problem_of(::chmod(path.c_str(), 0600)), 0);
  EXPECT_EQ(as_user(1001, {}, [file] { return ::write(file, "x", 1) == 1 ? 0 : errno; }), 0);
  EXPECT_EQ(status_of(path).st_mode, static_cast<mode_t>(S_IFREG | 0600));
  ::close(file);
}

TEST_P(MountOrangefsFiles, CuttingAFileClearsTheSetUserIdBit) {
  const MountProcess mount(settings());
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string path = new_directory(mount) + "/file";
  const auto cut = [&](const std::function<int()>& act) {
    make_file(path, "text");
    EXPECT_EQ(problem_of(::chmod(path.c_str(), 04777)), 0);
    EXPECT_EQ(as_user(1001, {}, act), 0);
    EXPECT_EQ(status_of(path).st_size, 0);
    return status_of(path).st_mode & 07777U;
  };
  EXPECT_EQ(cut([&] { return problem_of(::open(path.c_str(), O_WRONLY | O_TRUNC)); }), 0777U);
  EXPECT_EQ(cut([&] { return problem_of(::truncate(path.c_str(), 0)); }), 0777U);
}

TEST_P(MountOrangefsFiles, ADirectoryHasChangedWhenAnEntryHas) {
  const MountProcess mount(settings());
  const fs::path directory = new_directory(mount);
  const auto mtime = [&] { return status_of(directory).st_mtime; };
  const auto changes = [&](const std::function<void()>& act) {
    const std::time_t before = mtime();
    EXPECT_TRUE(comes_true([&] { return std::time(nullptr) > before; }));
    (void)mtime();  // known now, and the change comes before it is asked for again
    const std::time_t begin = std::time(nullptr);
    act();
    EXPECT_GE(mtime(), begin);
  };
  changes([&] { make_file(directory / "file"); });
  changes([&] { fs::rename(directory / "file", directory / "moved"); });
  changes([&] { fs::remove(directory / "moved"); });
  changes([&] { fs::create_directory(directory / "d"); });
  const std::array<timespec, 2> long_ago = {{{.tv_sec = 1000, .tv_nsec = 0}, {2000, 0}}};
  ASSERT_EQ(problem_of(::utimensat(AT_FDCWD, directory.c_str(), long_ago.data(), 0)), 0);
  EXPECT_EQ(mtime(), 2000);
}

TEST_P(MountOrangefsFiles, ADirectoryOfManyEntriesIsListedWhole) {
  const MountProcess mount(settings());
  const std::string directory = new_directory(mount);
  constexpr std::size_t kEntries = 700;  // more than a page on each server
  for (std::size_t i = 0; i < kEntries; ++i) make_file(directory + "/" + std::to_string(i));
  const MountProcess other(settings());
  std::set<std::string> names;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(other.path() / "work")) {
    EXPECT_TRUE(entry.is_regular_file());
    names.insert(entry.path().filename());
    ++count;
  }
  EXPECT_EQ(names.size(), kEntries);
  EXPECT_EQ(count, kEntries);
  for (const std::string& name : names) EXPECT_TRUE(fs::remove(directory + "/" + name));
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_P(MountOrangefsFiles, AListingCanBeGoneOnWith) {
  const MountProcess mount(settings());
  const std::string path = new_directory(mount);
  for (int i = 0; i < 700; ++i) make_file(path + "/" + std::to_string(i));
  DIR* const directory = ::opendir(path.c_str());
  ASSERT_NE(directory, nullptr);
  std::vector<std::string> all;
  std::vector<long> places;
  for (const dirent* each = ::readdir(directory); each != nullptr; each = ::readdir(directory)) {
    all.emplace_back(each->d_name);
    places.push_back(::telldir(directory));
  }
  ASSERT_EQ(all.size(), 702U);
  for (const std::size_t from : {650U, 17U, 400U}) {
    ::seekdir(directory, places[from]);
    const dirent* const next = ::readdir(directory);
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->d_name, all[from + 1]);
  }
  ::closedir(directory);
}

TEST_P(MountOrangefsFiles, HaveExtendedAttributes) {
  const MountProcess mount(settings());
  const std::string file = mount.path() / "file";
  make_file(file);
  ASSERT_EQ(problem_of(::setxattr(file.c_str(), "user.one", "1", 1, XATTR_CREATE)), 0);
  EXPECT_EQ(problem_of(::setxattr(file.c_str(), "user.one", "2", 1, XATTR_CREATE)), EEXIST);
  EXPECT_EQ(problem_of(::setxattr(file.c_str(), "user.two", "2", 1, XATTR_REPLACE)), ENODATA);
  std::array<char, 64> value = {};
  EXPECT_EQ(::getxattr(file.c_str(), "user.one", value.data(), value.size()), 1);
  EXPECT_EQ(value[0], '1');
  EXPECT_EQ(problem_of(::getxattr(file.c_str(), "user.none", nullptr, 0)), ENODATA);
  EXPECT_EQ(::listxattr(file.c_str(), value.data(), value.size()), 9);
  EXPECT_STREQ(value.data(), "user.one");
  EXPECT_EQ(problem_of(::removexattr(file.c_str(), "user.one")), 0);
  EXPECT_EQ(problem_of(::removexattr(file.c_str(), "user.one")), ENODATA);
  EXPECT_EQ(::listxattr(file.c_str(), nullptr, 0), 0);
}

std::string layout_of(const std::string& path) {
  std::array<char, 256> text = {};
  const ssize_t size = ::getxattr(path.c_str(), "user.vpfs.layout", text.data(), text.size());
  return size < 0 ? std::strerror(errno) : std::string(text.data(), static_cast<size_t>(size));
}

int set_layout(const std::string& path, const std::string& layout) {
  return problem_of(::setxattr(path.c_str(), "user.vpfs.layout", layout.data(), layout.size(), 0));
}

TEST_P(MountOrangefsFiles, AreOnTheServersOfTheirLayout) {
  const MountProcess mount(settings({"allow_other", "layout=list:s1"}));
  const std::string directory = new_directory(mount);
  EXPECT_EQ(layout_of(directory), "list:s1") << "that of the mount";
  make_file(directory + "/on_one", std::string(300'000, 'x'));
  EXPECT_EQ(layout_of(directory + "/on_one"), "list:s1");
  ASSERT_EQ(set_layout(directory, "list:s1:s0"), 0);
  EXPECT_EQ(layout_of(directory), "list:s1:s0");
  make_file(directory + "/on_two", std::string(300'000, 'y'));
  EXPECT_EQ(layout_of(directory + "/on_two"), "list:s1:s0");
  // It holds for another mount and for directories that are made in it.
  const MountProcess other(settings());
  ASSERT_EQ(problem_of(::mkdir((other.path() / "work/below").c_str(), 0755)), 0);
  make_file(other.path() / "work/below/file", "z");
  EXPECT_EQ(layout_of(other.path() / "work/below/file"), "list:s1:s0");
  EXPECT_EQ(read_text(other.path() / "work/on_one"), std::string(300'000, 'x'));
  EXPECT_EQ(read_text(other.path() / "work/on_two"), std::string(300'000, 'y'));
  EXPECT_EQ(set_layout(directory, "list:s7"), EINVAL);
  EXPECT_EQ(set_layout(directory, "somewhere"), EINVAL);
  EXPECT_EQ(set_layout(directory + "/on_one", "list:s0"), EPERM);
  EXPECT_EQ(problem_of(::removexattr(directory.c_str(), "user.vpfs.layout")), 0);
  EXPECT_EQ(layout_of(directory), "list:s1");
}

// Through proxies: the mount connects to the address of its zone, and names servers by all of their
// addresses.
TEST_P(MountOrangefsFiles, AreOnTheServersOfTheirLayoutThroughProxiesToo) {
  const MountSite site(GetParam() == Servers::real ? Backend::real : Backend::embedded,
                       MountSite::Faults::of_proxy);
  for (const char* const layout : {"list:s0", "local", "affinity:1", "disperse"}) {
    const MountProcess mount(site.settings({"allow_other", std::string("layout=") + layout}));
    const std::string path = mount.path() / layout;
    make_file(path, std::string(300'000, 'x'));
    EXPECT_EQ(read_text(path), std::string(300'000, 'x')) << layout;
    if (layout == std::string("list:s0")) EXPECT_EQ(layout_of(path), layout);
  }
}

// A user's list that recurses, or is long, once ended the mount or kept it busy for seconds.
TEST_P(MountOrangefsFiles, HostileListsOfNodesDoNotHurtTheMount) {
  MountProcess mount(settings({"allow_other", "layout=internal"}));
  const std::string directory = new_directory(mount);
  std::string brackets;
  for (int i = 0; i < 43'600; ++i) brackets += "[0]";
  const std::vector<std::string> lists = {brackets, std::string(100'000, 'a') + "[0-65535]",
                                          std::string(20'000, 'a') + "[0-4000]", "n[0-999999999]"};
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::string path = directory + "/file" + std::to_string(i);
    Process touch({"touch", path}, {{"SLURM_JOB_NODELIST", lists[i]}});
    const auto exit = touch.wait();
    EXPECT_TRUE(exit && exit->ok()) << touch.errors();
    EXPECT_TRUE(fs::exists(path));
  }
  // The worst of them took 500 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_TRUE(mount.process().running());
  EXPECT_THAT(mount.process().errors(), ::testing::HasSubstr("too many brackets in a word"));
}

TEST_P(MountOrangefsFiles, OfAJobKeepToItsServers) {
  const MountProcess mount(settings({"allow_other", "layout=affinity:1"}));
  const std::string directory = new_directory(mount);
  std::set<std::string> used;
  for (const std::string job : {"11", "12", "13", "14", "15", "16"}) {
    for (const std::string name : {"a", "b"}) {
      Process touch({"touch", directory + "/" + name + job}, {{"SLURM_JOB_ID", job}});
      const auto exit = touch.wait();
      EXPECT_TRUE(exit && exit->ok());
    }
    EXPECT_EQ(layout_of(directory + "/a" + job), layout_of(directory + "/b" + job));
    used.insert(layout_of(directory + "/a" + job));
  }
  EXPECT_GT(used.size(), 1U) << "all jobs on one server";
}

TEST_P(MountOrangefsFiles, GoToTheServersOfThisNodeOrOfTheJobs) {
  // All servers are on this node.
  const MountProcess mount(settings({"allow_other", "layout=local"}));
  const std::string directory = new_directory(mount);
  make_file(directory + "/local");
  EXPECT_THAT(layout_of(directory + "/local"), ::testing::HasSubstr("s0:s1"));
  const auto make_as_job = [&](const std::string& layout) {
    EXPECT_EQ(set_layout(directory, layout), 0);
    Process touch({"touch", directory + "/" + layout}, {{"SLURM_JOB_NODELIST", "s[1-1],n7"}});
    const auto exit = touch.wait();
    EXPECT_TRUE(exit && exit->ok());
    return layout_of(directory + "/" + layout);
  };
  EXPECT_EQ(make_as_job("internal"), "list:s1");
  EXPECT_EQ(make_as_job("external"), GetParam() == Servers::real ? "list:s0" : "list:s0:s2");
}

TEST_P(MountOrangefsFiles, TheFileSystemHasASize) {
  const MountProcess mount(settings());
  struct statvfs status = {};
  ASSERT_EQ(problem_of(::statvfs(mount.path().c_str(), &status)), 0);
  EXPECT_GT(status.f_blocks, 1000U);
  EXPECT_GT(status.f_bavail, 0U);
  EXPECT_LE(status.f_bavail, status.f_blocks);
  EXPECT_EQ(status.f_namemax, 255U);
}

}  // namespace
}  // namespace vpfs::test
