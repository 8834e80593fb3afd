// Writes that a limit holds keep a bounded part of the memory, and lose no byte.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;

constexpr std::size_t kWriteSize = 1U << 20;
constexpr unsigned kWriters = 400;

// Mallory is held; the bound is small.
constexpr const char* kHeld = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
limits: {held_bytes: 32 MiB}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: 1 B/s, burst: 1 B}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";

std::string data_of(unsigned writer) {
  std::string data(kWriteSize, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<char>((i / 4096 * 31 + i + writer * 17U) & 0xffU);
  }
  return data;
}

std::size_t resident_mib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    std::size_t kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

bool write_all(const std::string& path, int flags, unsigned writer) {
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | flags, 0600);
  const std::string data = data_of(writer);
  void* const memory =
      ::mmap(nullptr, kWriteSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (file < 0 || memory == MAP_FAILED) return false;
  std::memcpy(memory, data.data(), kWriteSize);
  std::size_t done = 0;
  while (done < kWriteSize) {
    const ssize_t put = ::pwrite(file, static_cast<const char*>(memory) + done, kWriteSize - done,
                                 static_cast<off_t>(done));
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  ::munmap(memory, kWriteSize);
  return ::close(file) == 0;
}

// Through the page cache, and past it.
class MountHeld : public MountTest, public ::testing::WithParamInterface<int> {};

TEST_P(MountHeld, WritesKeepABoundedMemoryAndEveryByte) {
  MountProcess mount({.config = kHeld});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const pid_t mallory = ::fork();
  if (mallory == 0) {
    if (::setgid(kMallory) != 0 || ::setuid(kMallory) != 0) ::_exit(111);
    std::atomic<int> failed = 0;
    std::vector<std::thread> all;
    for (unsigned i = 0; i < kWriters; ++i) {
      all.emplace_back([&, i] {
        const std::string path = mount.path() / ("m" + std::to_string(i));
        if (!write_all(path, GetParam(), i)) ++failed;
      });
    }
    for (std::thread& each : all) each.join();
    ::_exit(failed == 0 ? 0 : 1);
  }
  // Kernels may send a write in two parts.
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] >= kWriters - 1; }));
  if (!programs_have_sanitizer()) {
    EXPECT_LT(resident_mib(mount.process().pid()), 132U);
  }
  EXPECT_LE(mount.status()["held_write_bytes"].get<std::uint64_t>(), 40U << 20);
  // Others' writes pass, though the threads take messages in order.
  EXPECT_TRUE(write_all(mount.path() / "other", GetParam(), 999));
  EXPECT_EQ(read_text(mount.below() / "other"), data_of(999));
  (void)mount.ask({"bypass", "on"});
  int status = -1;
  ::waitpid(mallory, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a write failed";
  for (unsigned i = 0; i < kWriters; ++i) {
    EXPECT_TRUE(read_text(mount.below() / ("m" + std::to_string(i))) == data_of(i)) << i;
  }
  const nlohmann::json idle = mount.idle_status();
  EXPECT_EQ(idle["held_write_bytes"], 0);
  EXPECT_EQ(idle["held_write_pipes"], 0);
}

// Those that are killed give back what they had.
TEST_P(MountHeld, WritesOfKilledProcessesKeepNothing) {
  MountProcess mount({.config = kHeld});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const pid_t mallory = ::fork();
  if (mallory == 0) {
    if (::setgid(kMallory) != 0 || ::setuid(kMallory) != 0) ::_exit(111);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 100; ++i) {
      all.emplace_back(
          [&, i] { (void)write_all(mount.path() / ("m" + std::to_string(i)), GetParam(), i); });
    }
    for (std::thread& each : all) each.join();
    ::_exit(0);
  }
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] >= 99; }));
  ::kill(mallory, SIGKILL);
  ::waitpid(mallory, nullptr, 0);
  EXPECT_TRUE(comes_true([&] {
    const nlohmann::json status = mount.status();
    return status["queued"] == 0 && status["held_write_bytes"] == 0 &&
           status["held_write_pipes"] == 0;
  })) << mount.status().dump();
  EXPECT_TRUE(write_all(mount.path() / "other", GetParam(), 7));
}

using MountHeldRequests = MountTest;

// What mallory's threads get from one direct write of 1 MiB each, in the order of their size.
std::vector<ssize_t> sizes_of_direct_writes(MountProcess& mount, unsigned writers) {
  std::array<int, 2> results = {};
  EXPECT_EQ(::pipe(results.data()), 0);
  const pid_t mallory = ::fork();
  if (mallory == 0) {
    if (::setgid(kMallory) != 0 || ::setuid(kMallory) != 0) ::_exit(111);
    void* const data =
        ::mmap(nullptr, kWriteSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < writers; ++i) {
      all.emplace_back([&, i] {
        const std::string path = mount.path() / ("m" + std::to_string(i));
        const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_DIRECT, 0600);
        const ssize_t put = ::pwrite(file, data, kWriteSize, 0);
        (void)!::write(results[1], &put, sizeof put);
      });
    }
    for (std::thread& each : all) each.join();
    ::_exit(0);
  }
  ::close(results[1]);
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] >= writers - 1; }));
  (void)mount.ask({"bypass", "on"});
  std::vector<ssize_t> sizes;
  for (ssize_t put = 0; ::read(results[0], &put, sizeof put) == sizeof put;) sizes.push_back(put);
  ::close(results[0]);
  ::waitpid(mallory, nullptr, 0);
  std::ranges::sort(sizes);
  return sizes;
}

// A user has half of held_bytes, 16 MiB here. The kernel copies direct writes, so what is beyond
// cannot stay in the pages of the process.
TEST_F(MountHeldRequests, DirectWritesAreWholeAsFarAsTheirUserHasRoom) {
  {
    MountProcess mount({.config = kHeld});
    fs::permissions(mount.scratch(), fs::perms::all);
    fs::permissions(mount.below(), fs::perms::all);
    EXPECT_THAT(sizes_of_direct_writes(mount, 14), Each(kWriteSize));
  }
  MountProcess mount({.config = kHeld});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const std::vector<ssize_t> sizes = sizes_of_direct_writes(mount, 40);
  ASSERT_EQ(sizes.size(), 40U);
  EXPECT_GE(std::ranges::count(sizes, static_cast<ssize_t>(kWriteSize)), 14);
  // Others go on behind what was written, at the start of a page.
  EXPECT_EQ(sizes.front(), 4096);
  for (const ssize_t each : sizes) EXPECT_EQ(each % 4096, 0);
}

// The kernel gives a mount 65,535 requests at once that no process waits for. Read-ahead is such.
constexpr std::size_t kReadAhead = 70'000;
constexpr off_t kStride = 8192;

TEST_F(MountHeldRequests, OfOneUserDoNotKeepTheReadAheadOfOthersBack) {
  MountProcess mount({.config = kHeld});
  fs::permissions(mount.scratch(), fs::perms::all);
  const std::string data = data_of(1);
  for (const char* name : {"alice", "mallory"}) {
    std::ofstream(mount.below() / name, std::ios::binary) << data;
    fs::permissions(mount.below() / name, static_cast<fs::perms>(0644));
  }
  fs::resize_file(mount.below() / "mallory", kReadAhead * kStride);
  const pid_t mallory = ::fork();
  if (mallory == 0) {
    if (::setgid(kMallory) != 0 || ::setuid(kMallory) != 0) ::_exit(111);
    const std::string name = mount.path() / "mallory";
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    for (std::size_t i = 0; i < kReadAhead; ++i) {
      // One page of every two, so that each is a request of its own.
      (void)::posix_fadvise(file, static_cast<off_t>(i) * kStride, 4096, POSIX_FADV_WILLNEED);
    }
    ::pause();
    ::_exit(0);
  }
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] > 32'000; }));
  // Alice's read comes as read-ahead, which the kernel would keep back.
  const pid_t alice = ::fork();
  if (alice == 0) {
    if (::setgid(kAlice) != 0 || ::setuid(kAlice) != 0) ::_exit(111);
    ::_exit(read_text(mount.path() / "alice") == data ? 0 : 1);
  }
  int status = -1;
  EXPECT_TRUE(comes_true([&] { return ::waitpid(alice, &status, WNOHANG) == alice; }))
      << mount.status()["queued"];
  EXPECT_EQ(status, 0);
  if (status < 0) {
    ::kill(alice, SIGKILL);
    ::waitpid(alice, nullptr, 0);
  }
  EXPECT_LT(mount.status()["queued"], 33'000) << "more than half";
  // What was not read ahead is read when a process wants it.
  (void)mount.ask({"bypass", "on"});
  ::kill(mallory, SIGKILL);
  ::waitpid(mallory, nullptr, 0);
  std::string begin(kWriteSize, '\0');
  std::ifstream(mount.path() / "mallory", std::ios::binary).read(begin.data(), kWriteSize);
  EXPECT_TRUE(begin == data);
}

INSTANTIATE_TEST_SUITE_P(Cached, MountHeld, ::testing::Values(0));
INSTANTIATE_TEST_SUITE_P(Direct, MountHeld, ::testing::Values(O_DIRECT));

}  // namespace
}  // namespace vpfs::test
