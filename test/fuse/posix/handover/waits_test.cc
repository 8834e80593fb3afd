// What users of a mount, or its own log, could keep waiting while a process takes over.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/handover/channel.h"
#include "net/descriptor.h"
#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using control::HandoverChannel;
using control::HandoverKind;
using control::kHandoverVersion;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr Duration kTakersPatience = 10s;

constexpr const char* kUnlimited = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
)";
constexpr const char* kWithMetadata = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {schedule: [io, metadata]}
)";

// No call asks for attributes or an ACL in between.
const std::vector<std::string> kFewThreads = {"allow_other", "noacl", "threads=4",
                                              "attr_timeout=60s"};

// A file below, which Mallory may use. To open or to cut it waits until the lease ends, which the
// kernel allows for 45 s.
class LeaseBelow {
 public:
  explicit LeaseBelow(const fs::path& path, mode_t mode = 0666)
      : file_(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600)) {
    std::signal(SIGIO, SIG_IGN);  // it tells of those who wait
    EXPECT_EQ(::fchmod(file_.get(), mode), 0);
    EXPECT_EQ(::fcntl(file_.get(), F_SETLEASE, F_WRLCK), 0);
  }
  ~LeaseBelow() { EXPECT_EQ(::fcntl(file_.get(), F_SETLEASE, F_UNLCK), 0); }
  LeaseBelow(const LeaseBelow&) = delete;
  LeaseBelow& operator=(const LeaseBelow&) = delete;

 private:
  net::Descriptor file_;
};

class MountUpgradeWaits : public MountTest {
 protected:
  static void open_to_all(const MountProcess& mount) {
    fs::permissions(mount.scratch(), fs::perms::all);
    fs::permissions(mount.below(), fs::perms::all);
  }
  static CallOf open_as_mallory(const std::string& name, int flags) {
    return {kMallory, [name, flags] { return ::open(name.c_str(), flags) < 0 ? errno : 0; }};
  }
  static bool wait_for(MountProcess& mount, const char* field, std::size_t count) {
    return comes_true([&] { return mount.status()[field] == count; });
  }
  static void expect_its_end(Process& old) {
    const auto exit = old.wait(20s);
    ASSERT_TRUE(exit) << old.errors();
    EXPECT_TRUE(exit->ok()) << exit->code << old.errors();
  }
};

TEST_F(MountUpgradeWaits, AUserWithLeasesBelowKeepsNoProcessFromTakingOver) {
  MountProcess mount({.config = kUnlimited});
  open_to_all(mount);
  fs::copy_file("/bin/true", mount.below() / "program");
  std::optional<LeaseBelow> file(mount.below() / "file");
  std::optional<LeaseBelow> program(std::in_place, mount.below() / "program", 0711);
  std::vector<CallOf> waiting;
  for (const int flags : {O_RDONLY, O_RDWR | O_APPEND}) {
    waiting.push_back(open_as_mallory(mount.path() / "file", flags));
  }
  // Its user may run it and not read it.
  const std::string name = mount.path() / "program";
  waiting.emplace_back(
      kMallory, [name] { return ::execl(name.c_str(), "program", static_cast<char*>(nullptr)); });
  CallOf killed = open_as_mallory(mount.path() / "file", O_RDONLY);
  ASSERT_TRUE(wait_for(mount, "busy_threads", 4)) << mount.status().dump();
  for (int i = 0; i < 2; ++i) {
    Process old = mount.hand_over();
    expect_its_end(old);
    ASSERT_TRUE(wait_for(mount, "busy_threads", 4)) << mount.status().dump();
  }
  killed.kill();
  EXPECT_TRUE(killed.result(5s)) << "it waits for the lease";
  for (CallOf& each : waiting) EXPECT_FALSE(each.result(0ms));
  file.reset();
  program.reset();
  for (CallOf& each : waiting) EXPECT_EQ(each.result(5s), 0);
  EXPECT_TRUE(wait_for(mount, "busy_threads", 0));
}

TEST_F(MountUpgradeWaits, AProcessThatDoesNotWaitForALeaseIsToldSo) {
  const MountProcess mount({.config = kUnlimited});
  open_to_all(mount);
  const LeaseBelow file(mount.below() / "file");
  EXPECT_EQ(open_as_mallory(mount.path() / "file", O_RDONLY | O_NONBLOCK).result(5s), EWOULDBLOCK);
}

// The flags of the mount's descriptors of a file below.
std::vector<int> flags_of(pid_t process, const fs::path& file) {
  std::vector<int> all;
  const fs::path its = fmt::format("/proc/{}", process);
  for (const auto& each : fs::directory_iterator(its / "fd")) {
    std::error_code gone;
    if (fs::read_symlink(each.path(), gone) != file) continue;
    std::ifstream info(its / "fdinfo" / each.path().filename());
    for (std::string word; info >> word;) {
      if (word == "flags:" && info >> word) all.push_back(std::stoi(word, nullptr, 8));
    }
  }
  std::erase_if(all, [](int flags) { return (flags & O_PATH) != 0; });
  return all;
}

TEST_F(MountUpgradeWaits, WhatIsOpenedWithoutWaitingWaitsForItsData) {
  MountProcess mount({.config = kUnlimited});
  const fs::path below = mount.below() / "file";
  std::ofstream(below) << "some";
  const auto expect_that_it_waits = [&](int flags, int appends) {
    const net::Descriptor file(::open((mount.path() / "file").c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(file) << errno;
    // What was open before is closed a moment later.
    std::vector<int> all;
    ASSERT_TRUE(comes_true([&] {
      all = flags_of(mount.process().pid(), below);
      return all.size() == 1;
    })) << all.size();
    EXPECT_EQ(all[0] & (O_NONBLOCK | O_APPEND), appends) << flags;
    EXPECT_EQ(all[0] & O_ACCMODE, flags & O_ACCMODE);
  };
  for (const int flags : {O_RDONLY, O_RDWR, O_WRONLY | O_APPEND}) expect_that_it_waits(flags, 0);
  const net::Descriptor file(::open(below.c_str(), O_RDONLY | O_CLOEXEC));
  int marks = FS_APPEND_FL;
  if (::ioctl(file.get(), FS_IOC_SETFLAGS, &marks) != 0) {
    GTEST_SKIP() << "no file here can only be appended to";
  }
  expect_that_it_waits(O_WRONLY | O_APPEND, O_APPEND);
  marks = 0;
  EXPECT_EQ(::ioctl(file.get(), FS_IOC_SETFLAGS, &marks), 0);
}

// Two calls of Mallory that wait below and change nothing that the mount knows. They take the
// threads that a user may have.
class CallsThatStay {
 public:
  explicit CallsThatStay(MountProcess& mount) {
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      const std::string name = std::to_string(i);
      leases_[i].emplace(mount.below() / name);
      calls_.emplace_back(kMallory, [name = std::string(mount.path() / name)] {
        return ::truncate(name.c_str(), 0) == 0 ? 0 : errno;
      });
    }
    EXPECT_TRUE(comes_true([&] { return mount.status()["busy_threads"] == leases_.size(); }))
        << mount.status().dump();
  }
  void end() {
    for (CallOf& each : calls_) EXPECT_FALSE(each.result(0ms)) << "it has not waited";
    for (std::optional<LeaseBelow>& each : leases_) each.reset();
    for (CallOf& each : calls_) EXPECT_EQ(each.result(5s), 0);
  }

 private:
  std::vector<CallOf> calls_;
  std::array<std::optional<LeaseBelow>, 2> leases_;  // they end first
};

// Mallory may have two threads, and both wait below. A look-up has had its turn, and waits for one
// of them.
TEST_F(MountUpgradeWaits, WhatWaitsForAThreadBehindCallsThatStayGoesAlong) {
  MountProcess mount({.config = kWithMetadata, .options = kFewThreads});
  open_to_all(mount);
  std::ofstream(mount.below() / "other") << "other";
  CallsThatStay stay(mount);
  CallOf waits = open_as_mallory(mount.path() / "other", O_RDONLY);
  ASSERT_TRUE(wait_for(mount, "waiting_for_threads", 1)) << mount.status().dump();
  Process old = mount.hand_over();
  EXPECT_TRUE(old.wait_for_line("2 requests more end here")) << old.errors();
  EXPECT_EQ(waits.result(5s), 0);
  stay.end();
  expect_its_end(old);
  EXPECT_EQ(mount.idle_status()["virtual_pfs"][0]["failed_requests"], 0);
}

// What has had its turn goes to the new process only if it changes what is known.
TEST_F(MountUpgradeWaits, OtherCallsThatWaitForAThreadAreDoneWhereTheyAre) {
  MountProcess mount({.config = kWithMetadata, .options = kFewThreads});
  open_to_all(mount);
  const net::Descriptor other(
      ::open((mount.path() / "other").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  CallsThatStay stay(mount);
  ASSERT_EQ(::fchown(other.get(), kMallory, kMallory), 0);
  CallOf waits(kMallory, [&] { return ::fchmod(other.get(), 0600) == 0 ? 0 : errno; });
  ASSERT_TRUE(wait_for(mount, "waiting_for_threads", 1)) << mount.status().dump();
  Process old = mount.hand_over();
  EXPECT_TRUE(old.wait_for_line("3 requests more end here")) << old.errors();
  EXPECT_FALSE(waits.result(100ms));
  stay.end();
  EXPECT_EQ(waits.result(5s), 0);
  expect_its_end(old);
}

// A request that moves from a queue to a thread while the old process lists what stays could be
// missed there. If that process is killed then, the request has no answer.
TEST_F(MountUpgradeWaits, NoCallBeginsUntilOneProcessIsInCharge) {
  MountProcess mount({.config = kWithMetadata, .options = kFewThreads});
  open_to_all(mount);
  CallsThatStay stay(mount);
  const net::Descriptor other(
      ::open((mount.path() / "other").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  ASSERT_EQ(::fchown(other.get(), kMallory, kMallory), 0);
  CallOf waits(kMallory, [&] { return ::fchmod(other.get(), 0600) == 0 ? 0 : errno; });
  ASSERT_TRUE(wait_for(mount, "waiting_for_threads", 1)) << mount.status().dump();
  auto taker = HandoverChannel::dial(mount.restart_socket());
  ASSERT_TRUE(taker) << taker.error().message;
  SavedState hello;
  hello.set("least", std::uint64_t{1});
  hello.set("most", kHandoverVersion);
  ASSERT_TRUE(taker->send(HandoverKind::hello, hello, kTakersPatience));
  const auto offer = taker->receive(kTakersPatience);
  ASSERT_TRUE(offer) << offer.error().message;
  for (std::uint64_t i = offer->state.number("early"); i > 0; --i) {
    ASSERT_TRUE(taker->receive(kTakersPatience));
  }
  ASSERT_TRUE(taker->send(HandoverKind::ready, {}, kTakersPatience));
  for (HandoverKind kind = HandoverKind::parcel; kind != HandoverKind::state;) {
    const auto message = taker->receive(kTakersPatience);
    ASSERT_TRUE(message) << message.error().message;
    kind = message->kind;
  }
  stay.end();
  EXPECT_FALSE(waits.result(200ms));
  const auto mode = [&] { return fs::status(mount.below() / "other").permissions(); };
  EXPECT_NE(mode(), fs::perms{0600});
  taker->close();
  EXPECT_EQ(waits.result(5s), 0);
  EXPECT_EQ(mode(), fs::perms{0600});
}

// Directories that the kernel knows cannot be forgotten on demand, so an open waits in vain.
TEST_F(MountUpgradeWaits, AnOpenThatWaitsForRoomGoesAlong) {
  const MountProcess inner({.config = kUnlimited});
  MountProcess mount(
      {.config = kUnlimited, .below = inner.path(), .wrapper = {"prlimit", "--nofile=4096:4096"}});
  constexpr int kMoreThanAUserMayKnow = 1000;
  for (int i = 0; i < kMoreThanAUserMayKnow; ++i) {
    fs::create_directory(inner.below() / std::to_string(i));
  }
  open_to_all(inner);
  fs::permissions(mount.scratch(), fs::perms::all);
  const fs::path at = mount.path();
  CallOf walk(kMallory, [at] {
    struct stat seen = {};
    for (int i = 0; i < kMoreThanAUserMayKnow; ++i) {
      if (::stat((at / std::to_string(i)).c_str(), &seen) != 0) return errno;
    }
    return 0;
  });
  ASSERT_EQ(walk.result(60s), ENFILE);
  CallOf waits = open_as_mallory(at / "0", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(comes_true([&] { return mount.status()["busy_threads"] == 1; }));
  Process old = mount.hand_over();
  // The kernel may have forgotten something by then.
  EXPECT_THAT(waits.result(20s), AnyOf(ENFILE, 0));
  expect_its_end(old);
}

// What a process says while it takes over would wait until it has.
TEST_F(MountUpgradeWaits, ALogOnTheMountItselfKeepsNoProcessFromTakingOver) {
  MountProcess mount({.config = kUnlimited});
  const fs::path config = mount.scratch() / "mount.yaml";
  std::ofstream(config) << fmt::format("mount: {{status_file: '{}', log: '{}', drain: 1 s}}\n",
                                       (mount.scratch() / "status.json").string(),
                                       (mount.path() / "log").string())
                        << fmt::format("control: {{socket: '{}'}}\n", mount.socket());
  mount.stop();
  mount.start();  // nothing serves the log before the mount does
  for (int i = 0; i < 2; ++i) {
    Process old = mount.hand_over();
    expect_its_end(old);
  }
  EXPECT_THAT(read_text(mount.below() / "log"), HasSubstr("took over"));
}

}  // namespace
}  // namespace vpfs::test
