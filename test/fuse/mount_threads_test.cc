// The threads of a mount: when they are started, and how many one user may take.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/private_device.h"
#include "test/fuse/threads_of.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using MountThreads = MountTest;

constexpr const char* kConfig = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
virtual_pfs: {default: {}}
rules:
  - match: {}
    virtual_pfs: default
)";

// For all users, each with a directory of its own.
void open_to_all(const MountProcess& mount) {
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  for (const uid_t uid : {kAlice, kMallory}) {
    const fs::path own = mount.below() / std::to_string(uid);
    fs::create_directory(own);
    EXPECT_EQ(::chown(own.c_str(), uid, uid), 0);
  }
}

// A file below, whose opens through the mount wait until the lease ends.
class LeasedFile {
 public:
  LeasedFile(const fs::path& path, uid_t owner)
      : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    std::signal(SIGIO, SIG_IGN);  // it tells of those who wait
    EXPECT_EQ(::fchown(descriptor_, owner, owner), 0);
    EXPECT_EQ(::fcntl(descriptor_, F_SETLEASE, F_WRLCK), 0);
  }
  ~LeasedFile() {
    EXPECT_EQ(::fcntl(descriptor_, F_SETLEASE, F_UNLCK), 0);
    ::close(descriptor_);
  }
  LeasedFile(const LeasedFile&) = delete;
  LeasedFile& operator=(const LeasedFile&) = delete;

 private:
  int descriptor_;
};

// Every thread of the mount acts for a user, and then more are needed: those wait below.
struct BusyMount {
  explicit BusyMount(const MountProcess& mount, unsigned opens)
      : leased(mount.below() / std::to_string(kAlice) / "leased", kAlice) {
    const fs::path own = mount.path() / std::to_string(kAlice);
    ThreadsOf(kAlice, 8, [own](unsigned thread) {
      for (unsigned i = 0; i < 50; ++i) {
        const std::string name = own / (std::to_string(thread) + "-" + std::to_string(i));
        ::close(::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      }
    }).wait();
    waiting.emplace(kAlice, opens, [own](unsigned /*thread*/) {
      ::close(::open((own / "leased").c_str(), O_RDONLY | O_CLOEXEC));
    });
    std::this_thread::sleep_for(500ms);
  }

  // Opens go on when the lease ends.
  std::optional<ThreadsOf> waiting;
  LeasedFile leased;
};

TEST_F(MountThreads, ThatAUserMadeTheMountStartActForEachCaller) {
  const PrivateDevice device(0666);
  if (!device.why_none().empty()) GTEST_SKIP() << device.why_none();
  MountProcess mount({.config = kConfig});
  open_to_all(mount);
  const BusyMount busy(mount, 20);
  for (int i = 0; i < 50; ++i) {
    const std::string name = "root-" + std::to_string(i);
    const int file = ::open((mount.path() / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0) << std::strerror(errno);
    EXPECT_EQ(::write(file, "secret", 6), 6);
    ::close(file);
    struct stat its = {};
    ASSERT_EQ(::stat((mount.below() / name).c_str(), &its), 0);
    ASSERT_EQ(its.st_uid, 0U) << name;
    ASSERT_EQ(its.st_gid, 0U) << name;
  }
}

TEST_F(MountThreads, AreStartedThoughOnlyRootMayOpenTheDevice) {
  const PrivateDevice device(0600);
  if (!device.why_none().empty()) GTEST_SKIP() << device.why_none();
  MountProcess mount({.config = kConfig});
  open_to_all(mount);
  const BusyMount busy(mount, 20);
  struct stat its = {};
  EXPECT_EQ(::stat((mount.path() / "nothing").c_str(), &its), -1);
  EXPECT_THAT(mount.process().errors(), Not(HasSubstr("Permission denied")));
}

// Neither a thread nor its channel can be made; the mount goes on, and makes them later.
TEST_F(MountThreads, AreStartedLaterIfDescriptorsHaveRunOut) {
  MountProcess mount({.config = kConfig});
  open_to_all(mount);
  const pid_t program = mount.process().pid();
  rlimit before = {};
  ASSERT_EQ(::prlimit(program, RLIMIT_NOFILE, nullptr, &before), 0);
  // The next descriptor is beyond the limit.
  rlimit few = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(program, RLIMIT_NOFILE, &few, nullptr), 0);
  const fs::path own = mount.path() / std::to_string(kAlice);
  ThreadsOf(kAlice, 8, [own](unsigned /*thread*/) {
    for (unsigned i = 0; i < 20; ++i) ::access(own.c_str(), F_OK);
  }).wait();
  EXPECT_TRUE(comes_true([&] {
    (void)::access((mount.path() / "nothing").c_str(), F_OK);
    return mount.process().errors().find("goes on with the threads that it has") !=
           std::string::npos;
  }));
  ASSERT_EQ(::prlimit(program, RLIMIT_NOFILE, &before, nullptr), 0);
  const BusyMount busy(mount, 20);
  EXPECT_EQ(::access(own.c_str(), F_OK), 0);
}

// Each of these opens waits until the lease ends, which the kernel allows for 45 s.
TEST_F(MountThreads, ThatWaitForOneUserLeaveSomeToOthers) {
  MountProcess mount({.config = kConfig, .options = {"allow_other", "threads=16"}});
  open_to_all(mount);
  BusyMount busy(mount, 100);
  ASSERT_TRUE(comes_true([&] { return mount.status()["waiting_for_threads"] == 92; }))
      << mount.status().dump();
  const nlohmann::json status = mount.status();
  EXPECT_EQ(status["busy_threads"], 8) << "half of them";
  EXPECT_EQ(status["users_out_of_threads"][0]["uid"], kAlice);
  EXPECT_EQ(status["users_out_of_threads"][0]["waiting"], 92);
  const std::string name = mount.path() / std::to_string(kMallory) / "file";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(as_user(kMallory, {},
                    [&] {
                      const int file = ::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
                      return file >= 0 && ::write(file, "x", 1) == 1 ? 0 : errno;
                    }),
            0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

// As many opens wait for the lease as the stage has slots, and more: they keep none.
TEST_F(MountThreads, ThatWaitForALeaseKeepNoSlots) {
  MountProcess mount({.config = std::string(kConfig) +
                                "scheduler: {policy: sfq, depth: 4, schedule: [io, metadata]}\n",
                      .options = {"allow_other"}});
  open_to_all(mount);
  BusyMount busy(mount, 40);
  const std::string name = mount.path() / std::to_string(kMallory) / "file";
  const auto write_and_read = [&] {
    const int file = ::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    char byte = 0;
    const bool is_good = file >= 0 && ::write(file, "x", 1) == 1 && ::pread(file, &byte, 1, 0) == 1;
    return is_good && byte == 'x' ? 0 : 1;
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(as_user(kMallory, {}, write_and_read), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  // A lease that is broken ends after 45 s.
  EXPECT_GT(mount.status()["busy_threads"], 4) << mount.status().dump();
}

// How many threads of the mount have the lowest priority.
std::size_t threads_that_yield(MountProcess& mount) {
  std::size_t count = 0;
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(mount.process().pid()) + "/task")) {
    const int thread = std::stoi(task.path().filename());
    count += ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) == 19 ? 1 : 0;
  }
  return count;
}

TEST_F(MountThreads, ThatSynchronizeManyFilesLeaveTheProcessorToOthers) {
  MountProcess mount({.config = kConfig});
  open_to_all(mount);
  const fs::path own = mount.path() / std::to_string(kAlice);
  ThreadsOf synchronize(kAlice, 32, [own](unsigned thread) {
    const std::string name = own / std::to_string(thread);
    const int file = ::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (::pwrite(file, "x", 1, 0) == 1) ::fsync(file);
  });
  std::size_t most_busy = 0;
  const bool some_yield = comes_true([&] {
    // Another user is there too.
    (void)::access((mount.path() / "nothing").c_str(), F_OK);
    most_busy = std::max(most_busy, mount.status()["busy_threads"].get<std::size_t>());
    return threads_that_yield(mount) > 0;
  });
  EXPECT_TRUE(synchronize.end());
  if (!some_yield && most_busy <= 8) GTEST_SKIP() << "nothing is synchronized slowly here";
  EXPECT_TRUE(some_yield) << most_busy << " threads were busy";
  EXPECT_TRUE(comes_true([&] { return mount.status()["busy_threads"] == 0; }));
  EXPECT_TRUE(comes_true([&] { return threads_that_yield(mount) == 0; }));
}

// What waits for a thread has not begun, so a signal that ends its process ends it.
TEST_F(MountThreads, ARequestThatWaitsForOneEndsWithItsProcess) {
  MountProcess mount({.config = kConfig, .options = {"allow_other", "threads=16"}});
  open_to_all(mount);
  const BusyMount busy(mount, 8);
  const std::string leased = mount.path() / std::to_string(kAlice) / "leased";
  ThreadsOf more(kAlice, 4,
                 [leased](unsigned) { ::close(::open(leased.c_str(), O_RDONLY | O_CLOEXEC)); });
  ASSERT_TRUE(comes_true([&] { return mount.status()["waiting_for_threads"] == 4; }));
  EXPECT_TRUE(more.end());
  EXPECT_EQ(mount.status()["waiting_for_threads"], 0);
}

}  // namespace
}  // namespace vpfs::test
