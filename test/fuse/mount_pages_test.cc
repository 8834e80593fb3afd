// Pages of the kernel's cache, and requests, that one user's held reads keep from others.
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/threads_of.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::size_t kFileSize = 16U << 20;
constexpr std::size_t kPage = 4096;

// Mallory is held.
constexpr const char* kHeldReader = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: RATE, burst: 64 KiB}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";

std::string slow(const std::string& rate) {
  std::string config = kHeldReader;
  return config.replace(config.find("RATE"), 4, rate);
}

char byte_at(std::size_t offset) {
  return static_cast<char>((offset / kPage * 31 + offset) & 0xffU);
}

bool is_right(const std::string& data, std::size_t offset) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != byte_at(offset + i)) return false;
  }
  return true;
}

// A file below that alice owns and all read.
class MountPages : public MountTest {
 protected:
  static fs::path make_file(const MountProcess& mount) {
    fs::permissions(mount.scratch(), fs::perms::all);
    fs::permissions(mount.below(), fs::perms::all);
    std::string data(kFileSize, '\0');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_at(i);
    const fs::path path = mount.below() / "data";
    std::ofstream(path, std::ios::binary) << data;
    EXPECT_EQ(::chown(path.c_str(), kAlice, kAlice), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0644), 0);
    return mount.path() / "data";
  }
};

// Whether it succeeds within the time.
bool alice_within(std::chrono::seconds time, const std::function<bool()>& act) {
  return as_user(kAlice, {}, [&] {
           ::alarm(static_cast<unsigned>(time.count()));
           return act() ? 0 : 1;
         }) == 0;
}

bool reads(const fs::path& path, std::size_t offset, std::size_t size) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string data(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file, data.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return ::close(file) == 0 && is_right(data, offset);
}

bool writes(const fs::path& path, std::size_t offset) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  std::array<char, kPage> page = {};
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = byte_at(offset + i);
  return ::pwrite(file, page.data(), page.size(), static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(page.size()) &&
         ::close(file) == 0;
}

// Has the kernel read all of the file, so many bytes at a time.
int ask_for_all(const fs::path& path, std::size_t step) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  for (std::size_t at = 0; at < kFileSize; at += step) {
    (void)::posix_fadvise(file, static_cast<off_t>(at), static_cast<off_t>(step),
                          POSIX_FADV_WILLNEED);
  }
  return file;
}

TEST_F(MountPages, ThatAnEndedProcessHasAskedForAreLockedForASecond) {
  MountProcess mount({.config = slow("1 B/s")});
  const fs::path path = make_file(mount);
  ThreadsOf(kMallory, 1, [&](unsigned) { ::close(ask_for_all(path, 1U << 20)); }).wait();
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] == 0; }));
  EXPECT_TRUE(alice_within(10s, [&] { return reads(path, 5U << 20, 64U << 10); }));
  EXPECT_TRUE(alice_within(10s, [&] { return writes(path, 9U << 20); }));
}

TEST_F(MountPages, ThatASlowUserHasAskedForAreLockedForASecond) {
  MountProcess mount({.config = slow("1 B/s")});
  const fs::path path = make_file(mount);
  // Large reads, and pages one by one.
  for (const std::size_t step : {std::size_t{1} << 20, kPage}) {
    ThreadsOf mallory(kMallory, 1, [&](unsigned) {
      (void)ask_for_all(path, step);
      ::pause();
    });
    ASSERT_TRUE(comes_true([&] { return mount.status()["queued"] >= 8; }));
    EXPECT_TRUE(alice_within(10s, [&] { return reads(path, 5U << 20, 64U << 10); }));
    EXPECT_TRUE(alice_within(10s, [&] { return writes(path, 9U << 20); }));
    EXPECT_TRUE(mallory.end());
  }
}

// What fails is read again, page by page.
TEST_F(MountPages, ThatASlowUserReadsHaveTheirBytesThoughItsReadAheadFails) {
  MountProcess mount({.config = slow("256 KiB/s")});
  const fs::path path = make_file(mount);
  ThreadsOf alice(kAlice, 1, [&](unsigned) {
    (void)::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::pause();
  });
  const int result = as_user(kMallory, {}, [&] {
    std::array<bool, 4> right = {};
    std::array<std::thread, 4> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = std::thread([&, i] { right[i] = reads(path, i << 22U, 192U << 10); });
    }
    for (std::thread& each : all) each.join();
    return right == std::array<bool, 4>{true, true, true, true} ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

// The calling thread has a signal a second later.
timer_t alarm_in_a_second() {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event._sigev_un._tid = ::gettid();
  timer_t timer = {};
  const itimerspec when = {.it_interval = {}, .it_value = {.tv_sec = 1, .tv_nsec = 0}};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
    (void)::timer_settime(timer, 0, &when, nullptr);
  }
  return timer;
}

// Processor seconds that a process has used.
double cpu_of(pid_t process) {
  const std::string stat = read_text("/proc/" + std::to_string(process) + "/stat");
  double user = 0;
  double system = 0;
  // From its third field on, the state.
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// The kernel tells of a request's first signal only.
TEST_F(MountPages, RequestsOfManyThreadsThatHandleSignalsCostLittle) {
  MountProcess mount({.config = slow("1 B/s")});
  const fs::path path = make_file(mount);
  constexpr unsigned kThreads = 1000;
  ThreadsOf mallory(kMallory, kThreads, [&](unsigned thread) {
    struct sigaction ignores = {};
    ignores.sa_handler = [](int) {};
    ignores.sa_flags = SA_RESTART;
    (void)::sigaction(SIGALRM, &ignores, nullptr);
    const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    void* const page = std::aligned_alloc(kPage, kPage);
    const timer_t timer = alarm_in_a_second();
    (void)::pread(file, page, kPage, static_cast<off_t>(thread * kPage));
    (void)::timer_delete(timer);
  });
  ASSERT_TRUE(comes_true([&] { return mount.status()["queued"] >= kThreads - 50; }));
  std::this_thread::sleep_for(2s);
  const double before = cpu_of(mount.process().pid());
  std::this_thread::sleep_for(2s);
  EXPECT_LT(cpu_of(mount.process().pid()) - before, programs_have_sanitizer() ? 1.6 : 0.8)
      << "of two seconds";
  EXPECT_TRUE(mallory.end()) << "a signal that ends it is obeyed";
}

}  // namespace
}  // namespace vpfs::test
