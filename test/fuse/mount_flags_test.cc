// What a file of a mounted directory does with the flags that it was opened with.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"
#include "test/support/process.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using MountFlags = MountTest;

constexpr std::size_t kPage = 4096;
constexpr const char* kConfig = R"(
virtual_pfs: {default: {}}
rules:
  - match: {}
    virtual_pfs: default
)";

TEST_F(MountFlags, AMappedPageOfAFileThatIsAppendedToKeepsItsPlace) {
  MountProcess mount({.config = kConfig});
  const std::string name = mount.path() / "file";
  const net::Descriptor file(::open(name.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_TRUE(file) << std::strerror(errno);
  const std::string pages(2 * kPage, 'A');
  ASSERT_EQ(::write(file.get(), pages.data(), pages.size()), static_cast<ssize_t>(pages.size()));
  void* const map =
      ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  std::memcpy(map, "BBBB", 4);
  EXPECT_EQ(::msync(map, pages.size(), MS_SYNC), 0);
  EXPECT_EQ(::munmap(map, pages.size()), 0);
  EXPECT_EQ(read_text(mount.below() / "file"), "BBBB" + pages.substr(4));
}

TEST_F(MountFlags, WhatAppendsIsDecidedByEachWrite) {
  MountProcess mount({.config = kConfig});
  const std::string name = mount.path() / "file";
  const net::Descriptor file(::open(name.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_TRUE(file) << std::strerror(errno);
  ASSERT_EQ(::write(file.get(), "AAAA", 4), 4);
  ASSERT_EQ(::fcntl(file.get(), F_SETFL, 0), 0);
  ASSERT_EQ(::pwrite(file.get(), "B", 1, 0), 1);
  ASSERT_EQ(::fcntl(file.get(), F_SETFL, O_APPEND), 0);
  ASSERT_EQ(::pwrite(file.get(), "C", 1, 0), 1);
  EXPECT_EQ(read_text(mount.below() / "file"), "BAAAC");
}

// The mount does not know what others have written below.
TEST_F(MountFlags, AppendsGoBehindWhatOthersHaveAppended) {
  MountProcess mount({.config = kConfig});
  const auto open = [](const fs::path& place) {
    return net::Descriptor(::open(place.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  };
  const net::Descriptor here = open(mount.path() / "file");
  const net::Descriptor below = open(mount.below() / "file");
  ASSERT_TRUE(here);
  ASSERT_TRUE(below);
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(::write(here.get(), "m", 1), 1);
    ASSERT_EQ(::write(below.get(), "bb", 2), 2);
    expected += "mbb";
  }
  EXPECT_EQ(read_text(mount.below() / "file"), expected);
}

// A process that does the same again and again, which only a signal ends.
template <typename Act>
pid_t process_that(Act act) {
  const pid_t process = ::fork();
  while (process == 0) act();
  return process;
}

// To open a pipe waits for its other end. The kernel keeps the directory locked while it makes a
// file, so all other processes there would wait as well.
TEST_F(MountFlags, APipeThatTakesTheNameOfANewFileHoldsUpNoProcess) {
  MountProcess mount({.config = kConfig});
  const std::string below = mount.below() / "name";
  const std::string name = mount.path() / "name";
  const std::string other = mount.path() / "other";
  std::vector<pid_t> processes = {process_that([&] {
    (void)::mkfifo(below.c_str(), 0666);
    (void)::unlink(below.c_str());
  })};
  // A process that finds a pipe waits for its other end in the kernel, which holds up no other.
  for (int i = 0; i < 8; ++i) {
    processes.push_back(
        process_that([&] { ::close(::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }));
  }
  std::atomic<bool> ends = false;
  std::atomic<unsigned> looks = 0;
  std::thread looks_around([&] {
    for (; !ends; ++looks) (void)::access(other.c_str(), F_OK);
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  bool goes_on = true;
  while (goes_on && std::chrono::steady_clock::now() < end) {
    const unsigned before = looks;
    goes_on = comes_true([&] { return looks > before; });
  }
  EXPECT_TRUE(goes_on) << "after " << looks << " looks";
  ends = true;
  for (const pid_t each : processes) ::kill(each, SIGKILL);
  // What waits in spite of that ends with the mount.
  if (!goes_on) ::kill(mount.process().pid(), SIGKILL);
  for (const pid_t each : processes) ::waitpid(each, nullptr, 0);
  looks_around.join();
}

}  // namespace
}  // namespace vpfs::test
