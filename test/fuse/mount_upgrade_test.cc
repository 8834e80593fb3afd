// A new process takes over a mount: what is open, known, locked and held goes along.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlain = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
)";

class MountUpgrade : public MountTest {};

void expect_good_end(Process& old) {
  const auto exit = old.wait(20s);
  ASSERT_TRUE(exit) << "the old process still runs: " << old.errors();
  EXPECT_TRUE(exit->ok()) << "exit code " << exit->code << ", signal " << exit->signal << "\n"
                          << old.errors();
}

void hand_over(MountProcess& mount, int times = 1) {
  for (int i = 0; i < times; ++i) {
    Process old = mount.hand_over();
    expect_good_end(old);
  }
}

std::string text_at(int file, std::size_t size, off_t offset) {
  std::string text(size, '\0');
  const ssize_t got = ::pread(file, text.data(), size, offset);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// The kernel knows nothing but the root.
bool knows_nothing(MountProcess& mount) {
  return comes_true([&] {
    std::ofstream("/proc/sys/vm/drop_caches") << 2;
    const nlohmann::json status = mount.status();
    return status["known_objects"] == 1 && status["open_files"] == 0;
  });
}

TEST_F(MountUpgrade, OpenFilesMappingsAndListingsGoOn) {
  MountProcess mount({.config = kPlain});
  const fs::path at = mount.path();
  fs::create_directory(at / "many");
  constexpr int kEntries = 3000;  // more than one listing of the kernel
  for (int i = 0; i < kEntries; ++i) {
    std::ofstream(mount.below() / "many" / fmt::format("a-rather-long-name-of-a-file-{}", i));
  }
  const int file = ::open((at / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int appends = ::open((at / "log").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const int gone = ::open((at / "gone").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::pwrite(file, "0123456789", 10, 0), 10);
  ASSERT_EQ(::pwrite(gone, "unlinked", 8, 0), 8);
  ASSERT_EQ(::unlink((at / "gone").c_str()), 0);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  DIR* const listing = ::opendir((at / "many").c_str());
  ASSERT_NE(listing, nullptr);
  int entries = 0;
  while (entries < kEntries / 3 && ::readdir(listing) != nullptr) ++entries;

  for (int round = 0; round < 3; ++round) {
    hand_over(mount);
    EXPECT_EQ(text_at(file, 10, 0), "0123456789");
    EXPECT_EQ(text_at(gone, 100, 0), "unlinked");
    ASSERT_EQ(::write(appends, "line\n", 5), 5);
    static_cast<char*>(mapped)[5] = static_cast<char>('a' + round);
    ASSERT_EQ(::msync(mapped, 4096, MS_SYNC), 0);
    EXPECT_EQ(read_text(mount.below() / "file")[5], 'a' + round);
    static_cast<char*>(mapped)[5] = '5';
    for (int more = 0; more < kEntries / 6 && ::readdir(listing) != nullptr; ++more) ++entries;
    std::ofstream(at / fmt::format("new-{}", round)) << round;
    EXPECT_EQ(read_text(mount.below() / fmt::format("new-{}", round)), fmt::format("{}", round));
  }
  while (::readdir(listing) != nullptr) ++entries;
  EXPECT_EQ(entries, kEntries + 2) << "each entry once, with . and ..";
  EXPECT_EQ(read_text(mount.below() / "log"), "line\nline\nline\n");
  ::closedir(listing);
  ::munmap(mapped, 4096);
  for (const int each : {file, appends, gone}) ::close(each);
  EXPECT_TRUE(knows_nothing(mount)) << mount.status().dump();
}

TEST_F(MountUpgrade, LocksOfProcessesStay) {
  MountProcess mount({.config = kPlain});
  const std::string name = mount.path() / "file";
  const int mine = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(mine, LOCK_EX), 0);
  struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
  ASSERT_EQ(::fcntl(mine, F_SETLK, &part), 0);
  const auto try_flock = [&] {
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    return ::flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  };
  const auto try_part = [&] {
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    struct flock same = part;
    return ::fcntl(file, F_SETLK, &same) == 0 ? 0 : errno;
  };
  // One that waits for the lock does so in the kernel.
  CallOf waiter(0, [&] {
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    return ::flock(file, LOCK_EX) == 0 ? 0 : errno;
  });
  hand_over(mount, 2);
  EXPECT_EQ(CallOf(0, try_flock).result(5s), EWOULDBLOCK);
  EXPECT_EQ(CallOf(0, try_part).result(5s), EAGAIN);
  EXPECT_FALSE(waiter.result(100ms));
  ASSERT_EQ(::flock(mine, LOCK_UN), 0);
  EXPECT_EQ(waiter.result(5s), 0);
  ::close(mine);
  EXPECT_EQ(CallOf(0, try_part).result(5s), 0);
}

TEST_F(MountUpgrade, CountersRulesAndTheMountsEndGoOn) {
  MountProcess mount({.config = kPlain});
  const std::string name = mount.path() / "file";
  const auto write_some = [&] {
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    EXPECT_EQ(::write(file, "some", 4), 4);
    ::close(file);
  };
  write_some();
  EXPECT_EQ(mount.ask({"rule", "start", "urgent", "jobid=4711", "weight=4"}),
            "rule urgent started; this is version 1\n");
  const auto since = [&] {
    const std::string text = mount.ask({"status"});
    return text.substr(text.find("since"), 40);
  };
  const std::string begun = since();
  const nlohmann::json before = mount.idle_status();
  hand_over(mount, 2);
  write_some();
  const nlohmann::json after = mount.idle_status();
  EXPECT_EQ(before["virtual_pfs"][0]["done_requests"], 1);
  EXPECT_EQ(after["virtual_pfs"][0]["done_requests"], 2) << after.dump();
  EXPECT_EQ(since(), begun);
  EXPECT_NE(mount.ask({"rule", "list"}).find("urgent"), std::string::npos);
  EXPECT_TRUE(mount.is_mounted());
  // fusermount3 unmounts when the last process is gone, however it ends.
  mount.kill();
  EXPECT_TRUE(comes_true([&] { return !mount.is_mounted(); }));
}

TEST_F(MountUpgrade, UpgradeStartsTheProgramAgain) {
  MountProcess mount({.config = kPlain});
  const int file = ::open((mount.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::pwrite(file, "kept", 4, 0), 4);
  const std::string said = mount.ask({"upgrade"});
  EXPECT_NE(said.find("has taken over: 1 open files"), std::string::npos) << said;
  expect_good_end(mount.process());
  EXPECT_EQ(text_at(file, 10, 0), "kept");
  const std::string refused = mount.ask({"upgrade", "--binary", "/nowhere/vpfs-mount"});
  EXPECT_NE(refused.find("/nowhere/vpfs-mount cannot be started"), std::string::npos) << refused;
  EXPECT_EQ(text_at(file, 10, 0), "kept");
  ::close(file);
  Process unmount({"fusermount3", "-u", mount.path().string()});
  EXPECT_TRUE(unmount.wait()->ok()) << unmount.errors();
  // The test is not the parent of the new program, which has its status file until it ends.
  const net::Descriptor lock(
      ::open((mount.scratch() / "status.json.lock").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(comes_true([&] { return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0; }));
}

// Mallory may write 2 MiB/s and list a name each tenth of a second.
constexpr const char* kHeld = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
limits: {held_bytes: 8 MiB}
scheduler: {policy: tbf, schedule: [io, metadata]}
virtual_pfs: {slow: {rate: 2 MiB/s, burst: 1 MiB}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";

std::string block_of(int number) {
  std::string block(1 << 20, '\0');
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<char>((i / 4096 * 7 + i + static_cast<std::size_t>(number) * 13) & 0xff);
  }
  return block;
}

TEST_F(MountUpgrade, HeldRequestsGoAlongAndTheirLimitHolds) {
  MountProcess mount({.config = kHeld});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  std::ofstream(mount.below() / "read") << block_of(100);
  constexpr int kWriters = 14;  // more than the memory holds, so some are in pipes
  const auto begin = std::chrono::steady_clock::now();
  std::vector<CallOf> calls;
  for (int i = 0; i < kWriters; ++i) {
    const std::string name = mount.path() / fmt::format("written-{}", i);
    calls.emplace_back(kMallory, [name, i] {
      const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      const std::string block = block_of(i);
      return ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size())
                 ? ::close(file)
                 : errno;
    });
  }
  const std::string read = mount.path() / "read";
  calls.emplace_back(kMallory, [read] {
    const int file = ::open(read.c_str(), O_RDONLY | O_CLOEXEC);
    return text_at(file, 1 << 20, 0) == block_of(100) ? 0 : 1;
  });
  ASSERT_TRUE(comes_true([&] { return mount.status()["queued"] >= 5; }));
  // One whose process ends meanwhile is withdrawn by the process that has it then.
  CallOf killed(kMallory, [read] {
    const int file = ::open(read.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    std::array<char, 4096> data = {};
    return static_cast<int>(::read(file, data.data(), data.size()));
  });
  hand_over(mount, 3);
  const std::uint64_t still_held = mount.status()["queued"];
  const std::chrono::duration<double> until_then = std::chrono::steady_clock::now() - begin;
  // A loaded machine may take as long for the hand-overs as the limit for the writes.
  if (until_then.count() < kWriters / 4.0) EXPECT_GE(still_held, 1U);
  killed.kill();
  EXPECT_TRUE(killed.result(5s)) << "a signal finds it";
  for (CallOf& each : calls) EXPECT_EQ(each.result(40s), 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), (kWriters - 2) / 2.0) << "no hand-over gives the limit anew";
  for (int i = 0; i < kWriters; ++i) {
    EXPECT_TRUE(read_text(mount.below() / fmt::format("written-{}", i)) == block_of(i)) << i;
  }
  const nlohmann::json status = mount.idle_status();
  EXPECT_EQ(status["held_write_bytes"], 0);
  EXPECT_EQ(status["held_write_pipes"], 0);
  EXPECT_TRUE(knows_nothing(mount)) << mount.status().dump();
}

TEST_F(MountUpgrade, AMountOverItsOwnDirectoryTakesOver) {
  const TemporaryDirectory scratch;
  const fs::path at = scratch.path() / "over";
  fs::create_directory(at);
  std::ofstream(at / "file") << "text";
  const std::string config = scratch.write(
      "mount.yaml", fmt::format("control: {{socket: '{}/control'}}\n", scratch.path().string()));
  const std::vector<std::string> command = {
      program("vpfs-mount"),         "posix:" + at.string(), at.string(), "-f", "-o",
      "allow_other,config=" + config};
  Process first(command);
  ASSERT_TRUE(first.wait_for_line("ready at")) << first.errors();
  std::vector<std::string> takes = command;
  takes.insert(takes.end(), {"--take-over", scratch.path() / "control.restart"});
  Process second(takes);
  ASSERT_TRUE(second.wait_for_line("ready at")) << second.errors() << first.errors();
  expect_good_end(first);
  EXPECT_EQ(read_text(at / "file"), "text");
  second.signal(SIGTERM);
  expect_good_end(second);
  EXPECT_EQ(read_text(at / "file"), "text") << "the directory itself";
}

}  // namespace
}  // namespace vpfs::test
