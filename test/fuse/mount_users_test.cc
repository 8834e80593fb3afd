// What one user of a shared mount must not be able to do to another.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A mount that all users may use, over a directory in which all may make files, in a mount
// namespace of its own where `prepare` has run.
class SharedMount {
 public:
  struct Settings {
    std::string prepare = "true";  // commands of a shell; $BELOW is the directory below
    std::vector<std::string> options = {"allow_other"};
    std::size_t descriptors = 0;  // 0: as many as the test may have
  };
  explicit SharedMount(const Settings& settings) {
    fs::create_directories(below());
    fs::create_directories(path());
    fs::permissions(scratch_.path(), fs::perms::all);
    fs::permissions(below(), fs::perms::all);
    std::string command = "export TMPDIR=" + scratch_.path().string() +
                          " BELOW=" + below().string() + "; { " + settings.prepare +
                          "; } && chmod 777 $BELOW && exec " + program("vpfs-mount") +
                          " posix:" + below().string() + " " + path().string() + " -f";
    for (const std::string& option : settings.options) command += " -o " + option;
    std::vector<std::string> words = {"unshare", "-m", "--propagation", "private"};
    if (settings.descriptors > 0) {
      const std::string limit = std::to_string(settings.descriptors);
      words.insert(words.end(), {"prlimit", "--nofile=" + limit + ":" + limit});
    }
    words.insert(words.end(), {"bash", "-c", command});
    process_.emplace(words);
    ready_ = process_->wait_for_line("ready at", std::chrono::seconds(30));
  }
  ~SharedMount() {
    if (!process_->running()) return;
    process_->signal(SIGTERM);
    const auto exit = process_->wait();
    EXPECT_TRUE(exit && exit->ok()) << process_->errors();
  }
  SharedMount(const SharedMount&) = delete;
  SharedMount& operator=(const SharedMount&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] fs::path below() const { return scratch_.path() / "below"; }
  [[nodiscard]] fs::path path() const { return scratch_.path() / "mount"; }
  [[nodiscard]] Process& process() { return *process_; }
  // Descriptors that the mount has open.
  [[nodiscard]] std::size_t descriptors() const {
    const fs::path all = "/proc/" + std::to_string(process_->pid()) + "/fd";
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(all), fs::directory_iterator()));
  }

  // Starts a process of the user where the mount is seen; it ends with what `act` returns.
  [[nodiscard]] pid_t begin(uid_t uid, const std::function<int()>& act) const {
    const std::string place = "/proc/" + std::to_string(process_->pid()) + "/ns/mnt";
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int space = ::open(place.c_str(), O_RDONLY | O_CLOEXEC);
    if (::setns(space, CLONE_NEWNS) != 0 || ::setgroups(0, nullptr) != 0 ||
        ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) {
      ::_exit(111);
    }
    ::_exit(act());
  }
  [[nodiscard]] static int end(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 112;
  }
  [[nodiscard]] int run_as(uid_t uid, const std::function<int()>& act) const {
    return end(begin(uid, act));
  }

 private:
  TemporaryDirectory scratch_;
  std::optional<Process> process_;
  bool ready_ = false;
};

class MountUsers : public MountTest {};

// A device of fuse that all users may open, as most systems have it, or root alone.
std::string with_device(const std::string& mode) {
  return "D=$(mktemp -d) && mount -t tmpfs none $D && mknod $D/fuse c 10 229 && chmod " + mode +
         " $D/fuse && mount --bind $D/fuse /dev/fuse";
}

// Makes files while others make the mount start threads. They must belong to this user: a thread
// must not begin as the user that another thread acts for.
int make_files(const fs::path& folder, uid_t uid, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const std::string file = folder / (std::to_string(uid) + "-" + std::to_string(i));
    const int made = ::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (made < 0) return 1;
    struct stat its = {};
    if (::fstat(made, &its) != 0 || its.st_uid != uid || its.st_gid != uid) return 2;
    if (::write(made, "x", 1) != 1 || ::fchmod(made, 0640) != 0) return 3;
    if (::fsetxattr(made, "user.of", &uid, sizeof uid, 0) != 0 && errno != EOPNOTSUPP) return 4;
    if (::close(made) != 0) return 5;
    if (i % 3 == 0 && ::unlink(file.c_str()) != 0) return 6;
  }
  return 0;
}

// Names what is in a folder, and looks at each.
int walk(const fs::path& folder, std::size_t expected) {
  std::size_t seen = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat its = {};
    if (::lstat(entry.path().c_str(), &its) != 0) return 2;
    ++seen;
  }
  return error ? 3 : seen == expected ? 0 : 4;
}

// Holds a lease on a file of the directory below, so that processes that open it wait there.
// Ends with its object.
class Lease {
 public:
  Lease(const SharedMount& mount, const fs::path& file)
      : process_(mount.begin(0, [&] { return hold(file); })) {}
  ~Lease() {
    ::kill(process_, SIGKILL);
    (void)SharedMount::end(process_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The file has another name while it is held.
  static fs::path name_of(const fs::path& file) { return file.string() + ".held"; }

 private:
  static int hold(const fs::path& file) {
    ::signal(SIGIO, SIG_IGN);
    const int opened = ::open(file.c_str(), O_RDWR | O_CREAT, 0666);
    if (opened < 0 || ::fchmod(opened, 0666) != 0 || ::fcntl(opened, F_SETLEASE, F_WRLCK) != 0 ||
        ::rename(file.c_str(), name_of(file).c_str()) != 0) {
      return 1;
    }
    for (;;) ::pause();
  }

  pid_t process_;
};

class MountUsersWithDevice : public MountUsers,
                             public ::testing::WithParamInterface<const char*> {};

TEST_P(MountUsersWithDevice, FilesBelongToTheirMakersWhileThreadsStart) {
  SharedMount mount({.prepare = with_device(GetParam())});
  ASSERT_TRUE(mount.ready()) << mount.process().errors();
  constexpr int kUsers = 8;
  constexpr int kRounds = 150;
  // Threads that have acted for alice, and more of them than wait for messages.
  std::vector<pid_t> makers;
  for (int i = 0; i < 4; ++i) {
    makers.push_back(mount.begin(kAlice, [&] { return walk(mount.path(), 0); }));
  }
  for (const pid_t maker : makers) EXPECT_EQ(SharedMount::end(maker), 0);
  makers.clear();
  std::optional<Lease> lease;
  lease.emplace(mount, mount.below() / "lease");
  ASSERT_TRUE(comes_true([&] { return fs::exists(Lease::name_of(mount.below() / "lease")); }));
  // Their calls wait below, so that the mount starts threads on behalf of alice.
  std::vector<pid_t> waiters;
  for (int i = 0; i < 12; ++i) {
    waiters.push_back(mount.begin(kAlice, [&] {
      return ::open(Lease::name_of(mount.path() / "lease").c_str(), O_RDWR) >= 0 ? 0 : 1;
    }));
  }
  // Root is the first of them, so that threads which have not acted for a user yet act for root.
  EXPECT_EQ(mount.run_as(0, [&] { return make_files(mount.path(), 0, kRounds); }), 0);
  for (int i = 1; i < kUsers; ++i) {
    const uid_t uid = kAlice + static_cast<uid_t>(i);
    makers.push_back(mount.begin(uid, [&, uid] { return make_files(mount.path(), uid, kRounds); }));
  }
  for (const pid_t maker : makers) EXPECT_EQ(SharedMount::end(maker), 0);
  lease.reset();
  for (const pid_t waiter : waiters) EXPECT_EQ(SharedMount::end(waiter), 0);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(mount.below())) {
    const std::string name = entry.path().filename();
    if (name == Lease::name_of("lease")) continue;
    struct stat its = {};
    ASSERT_EQ(::stat(entry.path().c_str(), &its), 0);
    EXPECT_EQ(std::to_string(its.st_uid), name.substr(0, name.find('-')));
    EXPECT_EQ(its.st_mode & 0777, 0640U);
    ++files;
  }
  EXPECT_EQ(files, static_cast<std::size_t>(kUsers * (kRounds - kRounds / 3)));
  EXPECT_THAT(mount.process().errors(), Not(HasSubstr("Permission denied")));
}

INSTANTIATE_TEST_SUITE_P(MountUsers, MountUsersWithDevice, ::testing::Values("666", "600"),
                         [](const auto& info) { return "Mode" + std::string(info.param); });

std::size_t entries_to_walk() {
  const char* const wanted = std::getenv("VPFS_ENTRIES");
  return wanted != nullptr ? std::stoul(wanted) : 20'000;
}

TEST_F(MountUsers, ManyKnownFilesTakeNoDescriptors) {
  SharedMount mount({.descriptors = 4096});
  ASSERT_TRUE(mount.ready()) << mount.process().errors();
  const std::size_t count = entries_to_walk();
  fs::create_directories(mount.below() / "many");
  for (std::size_t i = 0; i < count; ++i) {
    const int made = ::open((mount.below() / "many" / std::to_string(i)).c_str(),
                            O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    ASSERT_GE(made, 0);
    ::close(made);
  }
  EXPECT_EQ(mount.run_as(kMallory, [&] { return walk(mount.path() / "many", count); }), 0);
  EXPECT_LE(mount.descriptors(), 512U);
  EXPECT_EQ(mount.run_as(kAlice, [&] { return make_files(mount.path(), kAlice, 30); }), 0);
}

// overlayfs with so many files.
std::string with_overlay(unsigned files) {
  return "S=$(mktemp -d) && mount -t tmpfs none $S && mkdir $S/u $S/w $S/l && for i in $(seq " +
         std::to_string(files) +
         "); do echo > $S/l/$i; done && mount -t overlay none "
         "-o lowerdir=$S/l,upperdir=$S/u,workdir=$S/w $BELOW";
}

// overlayfs has no handles that serve, so each known object is open: the kernel is asked to forget
// them, and one user cannot take the descriptors of others.
TEST_F(MountUsers, WhereHandlesDoNotServeTheKernelIsAskedToForget) {
  SharedMount mount({.prepare = with_overlay(3000), .descriptors = 2048});
  if (!mount.ready() && mount.process().errors().find("overlay") != std::string::npos) {
    GTEST_SKIP() << "there is no overlayfs: " << mount.process().errors();
  }
  ASSERT_TRUE(mount.ready()) << mount.process().errors();
  const pid_t walker = mount.begin(kMallory, [&] {
    for (int i = 0; i < 6; ++i) {
      if (walk(mount.path(), 3000) != 0) return 1;
    }
    return 0;
  });
  EXPECT_EQ(mount.run_as(kAlice, [&] { return walk(mount.path(), 3000); }), 0);
  EXPECT_EQ(SharedMount::end(walker), 0);
  EXPECT_LE(mount.descriptors(), 2048U);
}

TEST_F(MountUsers, SeveralProcessesThatWalkOneDirectoryHaveNoError) {
  SharedMount mount({.prepare = with_overlay(1500), .descriptors = 2048});
  if (!mount.ready() && mount.process().errors().find("overlay") != std::string::npos) {
    GTEST_SKIP() << "there is no overlayfs: " << mount.process().errors();
  }
  ASSERT_TRUE(mount.ready()) << mount.process().errors();
  std::vector<pid_t> walkers;
  for (int i = 0; i < 4; ++i) {
    walkers.push_back(mount.begin(kMallory, [&] {
      for (int round = 0; round < 3; ++round) {
        if (walk(mount.path(), 1500) != 0) return 1;
      }
      return 0;
    }));
  }
  for (const pid_t walker : walkers) EXPECT_EQ(SharedMount::end(walker), 0);
}

TEST_F(MountUsers, OneThatOpensManyFilesLeavesSomeForOthers) {
  SharedMount mount({.descriptors = 2048});
  ASSERT_TRUE(mount.ready()) << mount.process().errors();
  std::ofstream(mount.below() / "file") << "text";
  std::array<int, 2> ready = {};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t opener = mount.begin(kMallory, [&] {
    while (::open((mount.path() / "file").c_str(), O_RDONLY) >= 0) {
    }
    const int why = errno;
    (void)!::write(ready[1], &why, sizeof why);
    ::pause();
    return 0;
  });
  int why = 0;
  ASSERT_EQ(::read(ready[0], &why, sizeof why), static_cast<ssize_t>(sizeof why));
  EXPECT_TRUE(why == ENFILE) << std::strerror(why);
  EXPECT_EQ(mount.run_as(kAlice,
                         [&] {
                           for (int i = 0; i < 100; ++i) {
                             if (::open((mount.path() / "file").c_str(), O_RDONLY) < 0) return 1;
                           }
                           return 0;
                         }),
            0);
  ::kill(opener, SIGKILL);
  (void)SharedMount::end(opener);
  ::close(ready[0]);
  ::close(ready[1]);
  // What was taken comes back.
  EXPECT_EQ(mount.run_as(kMallory,
                         [&] {
                           for (int i = 0; i < 200; ++i) {
                             if (::open((mount.path() / "file").c_str(), O_RDONLY) < 0) return 1;
                           }
                           return 0;
                         }),
            0);
}

// A file system of its own in a file, where root has some blocks for itself.
std::string with_reserved_blocks() {
  return "F=$(mktemp) && truncate -s 64M $F && mkfs.ext4 -q -m 40 -O ^has_journal $F && "
         "mount -o loop $F $BELOW && rm $F";
}

TEST_F(MountUsers, MappedWritesDoNotReachWhatIsReservedForRoot) {
  SharedMount mount({.prepare = with_reserved_blocks()});
  if (!mount.ready()) GTEST_SKIP() << "no loop device here: " << mount.process().errors();
  struct statvfs before = {};
  const auto look = [&](struct statvfs& status) {
    return ::statvfs(
        ("/proc/" + std::to_string(mount.process().pid()) + "/root" + mount.below().string())
            .c_str(),
        &status);
  };
  ASSERT_EQ(look(before), 0);
  const std::uint64_t reserved = before.f_bfree - before.f_bavail;
  ASSERT_GT(reserved * before.f_frsize, 16U << 20);
  EXPECT_EQ(mount.run_as(kMallory,
                         [&] {
                           constexpr std::size_t kSize = std::size_t{60} << 20;
                           const int file =
                               ::open((mount.path() / "mapped").c_str(), O_CREAT | O_RDWR, 0644);
                           if (file < 0 || ::ftruncate(file, kSize) != 0) return 1;
                           void* const place =
                               ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                           if (place == MAP_FAILED) return 2;
                           std::memset(place, 'x', kSize);
                           // There is no room for all of it.
                           return ::msync(place, kSize, MS_SYNC) != 0 ? 0 : 3;
                         }),
            0);
  struct statvfs after = {};
  ASSERT_EQ(look(after), 0);
  EXPECT_GE(after.f_bfree, reserved * 9 / 10) << "a user has blocks of root";
  // Root may use them.
  EXPECT_EQ(mount.run_as(0,
                         [&] {
                           const std::string data(1 << 20, 'r');
                           const int file =
                               ::open((mount.path() / "root").c_str(), O_CREAT | O_WRONLY, 0600);
                           return ::write(file, data.data(), data.size()) ==
                                          static_cast<ssize_t>(data.size())
                                      ? 0
                                      : 1;
                         }),
            0);
}

TEST_F(MountUsers, AttributesOfRootAreNotListedToThem) {
  SharedMount mount({.prepare = with_reserved_blocks()});
  if (!mount.ready()) GTEST_SKIP() << "no loop device here: " << mount.process().errors();
  const auto names = [&](std::string& text) {
    std::array<char, 256> room = {};
    const ssize_t size = ::listxattr((mount.path() / "file").c_str(), room.data(), room.size());
    text.assign(room.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return size;
  };
  EXPECT_EQ(mount.run_as(0,
                         [&] {
                           const std::string file = mount.path() / "file";
                           std::ofstream(file) << "text";
                           if (::chmod(file.c_str(), 0666) != 0) return 1;
                           if (::setxattr(file.c_str(), "trusted.x", "1", 1, 0) != 0) return 2;
                           if (::setxattr(file.c_str(), "user.x", "1", 1, 0) != 0) return 3;
                           std::string all;
                           if (names(all) < 0) return 4;
                           return all.find("trusted.x") != std::string::npos ? 0 : 5;
                         }),
            0);
  EXPECT_EQ(mount.run_as(kAlice,
                         [&] {
                           std::string all;
                           if (names(all) < 0) return 1;
                           if (all.find("user.x") == std::string::npos) return 2;
                           return all.find("trusted.x") == std::string::npos ? 0 : 3;
                         }),
            0);
}

// BeeGFS and some NFS have no ACLs; the kernel must not ask for them.
TEST_F(MountUsers, UseADirectoryWithoutAcls) {
  SharedMount mount({.prepare = "mount -t ramfs none $BELOW"});
  if (!mount.ready()) GTEST_SKIP() << "no ramfs here: " << mount.process().errors();
  EXPECT_EQ(mount.run_as(kAlice,
                         [&] {
                           if (::mkdir((mount.path() / "folder").c_str(), 0755) != 0) return 1;
                           if (make_files(mount.path() / "folder", kAlice, 5) != 0) return 2;
                           return walk(mount.path() / "folder", 3);
                         }),
            0);
}

}  // namespace
}  // namespace vpfs::test
