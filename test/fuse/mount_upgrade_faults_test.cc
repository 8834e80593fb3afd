// Hand-overs of a mount that fail at each step, and what stays with the process before.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/handover/channel.h"
#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using control::HandoverChannel;
using control::HandoverKind;
using control::kHandoverVersion;

constexpr Duration kSoon = std::chrono::seconds(10);

constexpr const char* kMallorysLimit = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: 1 MiB/s, burst: 64 KiB}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";
// A write of half a MiB waits for four seconds after another.
constexpr const char* kSlowDisk = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: 128 KiB/s, burst: 64 KiB}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";
constexpr const char* kNoLimit = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
)";

class MountUpgradeFaults : public MountTest {
 protected:
  void use(MountProcess& mount) {
    const std::string name = mount.path() / fmt::format("file-{}", ++number_);
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(file, 0) << errno;
    ASSERT_EQ(::write(file, "some", 4), 4);
    ::close(file);
    EXPECT_EQ(read_text(mount.below() / fmt::format("file-{}", number_)), "some");
    EXPECT_EQ(read_text(name), "some");
  }
  static std::size_t failures(MountProcess& mount) {
    const std::string text = mount.process().errors();
    std::size_t count = 0;
    for (std::size_t at = 0;
         (at = text.find("no process has taken over, this one goes on", at)) != std::string::npos;
         ++at) {
      ++count;
    }
    return count;
  }

 private:
  int number_ = 0;
};

// A process that takes over up to some step, and then is gone, or does nothing any more.
enum class Last { connected, hello, belongings, ready, state, taken };

void take_over_until(Last last, const std::string& socket) {
  auto channel = HandoverChannel::dial(socket);
  ASSERT_TRUE(channel) << channel.error().message;
  if (last == Last::connected) return;
  SavedState hello;
  hello.set("least", std::uint64_t{1});
  hello.set("most", kHandoverVersion);
  hello.set("program", std::string("a test"));
  ASSERT_TRUE(channel->send(HandoverKind::hello, hello, kSoon));
  if (last == Last::hello) return;
  const auto offer = channel->receive(kSoon);
  ASSERT_TRUE(offer) << offer.error().message;
  for (std::uint64_t i = offer->state.number("early"); i > 0; --i) {
    ASSERT_TRUE(channel->receive(kSoon));
  }
  if (last == Last::belongings) return;
  ASSERT_TRUE(channel->send(HandoverKind::ready, {}, kSoon));
  if (last == Last::ready) return;
  for (;;) {
    const auto message = channel->receive(kSoon);
    ASSERT_TRUE(message) << message.error().message;
    if (message->kind == HandoverKind::state) break;
  }
  if (last == Last::state) return;
  // What it has to say after `taken` is refused before it is said.
  channel->refuse_more();
  ASSERT_TRUE(channel->send(HandoverKind::taken, {}, kSoon));
}

TEST_F(MountUpgradeFaults, AProcessThatIsGoneAfterAnyStepLeavesTheOldOneAsItWas) {
  MountProcess mount({.config = kMallorysLimit});
  fs::permissions(mount.scratch(), fs::perms::all);
  fs::permissions(mount.below(), fs::perms::all);
  const int kept = ::open((mount.path() / "kept").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const std::string slow = mount.path() / "slow";
  CallOf held(kMallory, [slow] {
    const int file = ::open(slow.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 2; ++i) {
      if (::write(file, block.data(), block.size()) < 0) return errno;
    }
    return ::close(file);
  });
  ASSERT_TRUE(mount.wait_for_queued(1));
  std::size_t expected = 0;
  for (int round = 0; round < 2; ++round) {
    for (const Last last :
         {Last::connected, Last::hello, Last::belongings, Last::ready, Last::state, Last::taken}) {
      SCOPED_TRACE(static_cast<int>(last));
      take_over_until(last, mount.restart_socket());
      ++expected;
      ASSERT_TRUE(comes_true([&] { return failures(mount) >= expected; }))
          << mount.process().errors();
      use(mount);
      ASSERT_EQ(::pwrite(kept, "kept", 4, 0), 4);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(held.result(20s), 0);
  EXPECT_EQ(fs::file_size(mount.below() / "slow"), std::uintmax_t{2} << 20);
  ::close(kept);
  EXPECT_EQ(mount.idle_status()["busy_threads"], 0);
  Process old = mount.hand_over();
  EXPECT_TRUE(old.wait(40s)->ok()) << old.errors();
  use(mount);
}

TEST_F(MountUpgradeFaults, AProgramThatDoesNotFitIsRefusedWithOneLine) {
  MountProcess mount({.config = kNoLimit});
  const auto expect_refused = [&](std::vector<std::string> command, const std::string& why) {
    Process bad = mount.fail_to_hand_over(std::move(command));
    EXPECT_NE(bad.wait()->code, 0);
    EXPECT_NE(bad.errors().find(why), std::string::npos) << bad.errors();
    EXPECT_TRUE(mount.process().wait_for_line("no process has taken over, this one goes on"));
    use(mount);
    EXPECT_TRUE(mount.is_mounted());
  };
  std::vector<std::string> command = mount.command();
  const std::string bad = mount.scratch() / "bad.yaml";
  std::ofstream(bad) << "scheduler: {policy: nonsense}\n"
                     << "control: {socket: " << mount.socket() << "}\n";
  std::vector<std::string> other = command;
  other.insert(other.end(), {"-o", "config=" + bad});
  expect_refused(other, "nonsense");
  other = command;
  other.insert(other.end(), {"-o", "noexec"});
  expect_refused(other, "which cannot change");
  other = command;
  other[1] = "posix:/tmp";
  expect_refused(other, "and this one would show /tmp at");
  expect_refused({program("vpfs-mount"), "tcp://127.0.0.1:1/x", mount.path(), "-f"},
                 "it is for posix:DIRECTORY only");
}

TEST_F(MountUpgradeFaults, AProcessThatStopsWhileItTakesOverIsGivenUp) {
  MountProcess mount({.config = kNoLimit});
  auto channel = HandoverChannel::dial(mount.restart_socket());
  ASSERT_TRUE(channel);
  SavedState hello;
  hello.set("least", std::uint64_t{1});
  hello.set("most", kHandoverVersion);
  ASSERT_TRUE(channel->send(HandoverKind::hello, hello, kSoon));
  ASSERT_TRUE(channel->receive(kSoon));
  for (int i = 0; i < 3; ++i) use(mount);
  ASSERT_TRUE(channel->send(HandoverKind::ready, {}, kSoon));
  const auto begin = std::chrono::steady_clock::now();
  use(mount);  // which waits until the process is given up
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 6s);
  EXPECT_TRUE(comes_true([&] { return failures(mount) == 1; })) << mount.process().errors();
}

// The directory below is another mount, whose limit keeps a call of the outer one waiting there.
class MountUpgradeSlowBelow : public MountUpgradeFaults {
 protected:
  void SetUp() override {
    MountTest::SetUp();
    if (IsSkipped()) return;
    inner_.emplace(MountProcess::Settings{.config = kSlowDisk});
    fs::permissions(inner_->scratch(), fs::perms::all);
    fs::permissions(inner_->path(), fs::perms::all);
    outer_.emplace(MountProcess::Settings{.config = kNoLimit, .below = inner_->path()});
    fs::permissions(outer_->scratch(), fs::perms::all);
  }
  void TearDown() override {
    outer_.reset();
    inner_.reset();
  }
  // Writes so many blocks of half a MiB. The second one waits.
  CallOf write_slowly(int count) {
    const std::string name = outer_->path() / "slow";
    CallOf call(kMallory, [name, count] {
      const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (file < 0) return errno;
      const std::string block(512 << 10, 'x');
      for (int i = 0; i < count; ++i) {
        if (::write(file, block.data(), block.size()) < 0) return errno;
      }
      return ::close(file);
    });
    EXPECT_TRUE(inner_->wait_for_queued(1));
    return call;
  }

  // Reads blocks of half a MiB, past the page caches. The second or third one waits.
  CallOf read_slowly() {
    std::ofstream(inner_->below() / "large") << std::string(4 << 20, 'x');
    const std::string name = outer_->path() / "large";
    CallOf call(kMallory, [name] {
      const int file = ::open(name.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
      if (file < 0) return errno;
      constexpr std::size_t kBlock = 512 << 10;
      void* const block =
          ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      while (::read(file, block, kBlock) > 0) {
      }
      return 0;
    });
    EXPECT_TRUE(inner_->wait_for_queued(1));
    return call;
  }

  std::optional<MountProcess> inner_;
  std::optional<MountProcess> outer_;
};

TEST_F(MountUpgradeSlowBelow, ACallThatWaitsBelowEndsInTheOldProcess) {
  CallOf slow = write_slowly(2);
  Process old = outer_->hand_over();
  EXPECT_TRUE(old.wait_for_line("1 requests more end here")) << old.errors();
  use(*outer_);
  EXPECT_EQ(slow.result(40s), 0);
  EXPECT_TRUE(old.wait(40s)->ok()) << old.errors();
  EXPECT_EQ(fs::file_size(inner_->below() / "slow"), std::uintmax_t{1} << 20);
  EXPECT_EQ(outer_->idle_status()["outstanding"], 0);
}

TEST_F(MountUpgradeSlowBelow, AProcessWhoseReadWaitsCanBeKilled) {
  CallOf slow = read_slowly();
  slow.kill();
  EXPECT_TRUE(slow.result(3s)) << "it waits for the call to end";
}

TEST_F(MountUpgradeSlowBelow, AProcessWhoseReadHasStayedCanBeKilled) {
  CallOf slow = read_slowly();
  Process old = outer_->hand_over();
  EXPECT_TRUE(old.wait_for_line("1 requests more end here")) << old.errors();
  slow.kill();
  EXPECT_TRUE(slow.result(3s)) << "it waits for the call to end";
  use(*outer_);
}

// The write could land on what another process writes once this one is gone.
TEST_F(MountUpgradeSlowBelow, AProcessWhoseWriteWaitsEndsBehindIt) {
  CallOf slow = write_slowly(2);
  slow.kill();
  EXPECT_EQ(slow.result(40s), -1);
  EXPECT_EQ(fs::file_size(inner_->below() / "slow"), std::uintmax_t{1} << 20);
}

TEST_F(MountUpgradeSlowBelow, AProcessWhoseWriteHasStayedEndsBehindIt) {
  CallOf slow = write_slowly(2);
  Process old = outer_->hand_over();
  EXPECT_TRUE(old.wait_for_line("1 requests more end here")) << old.errors();
  slow.kill();
  EXPECT_EQ(slow.result(40s), -1);
  EXPECT_EQ(fs::file_size(inner_->below() / "slow"), std::uintmax_t{1} << 20);
}

TEST_F(MountUpgradeSlowBelow, AnOldProcessThatIsKilledLosesWhatHadStayedAndNothingElse) {
  CallOf slow = write_slowly(2);
  Process old = outer_->hand_over();
  EXPECT_TRUE(old.wait_for_line("1 requests more end here")) << old.errors();
  (void)old.kill();
  EXPECT_EQ(slow.result(40s), ECONNABORTED);
  EXPECT_TRUE(outer_->process().wait_for_line("the process before is gone"));
  use(*outer_);
  EXPECT_EQ(outer_->idle_status()["outstanding"], 0);
}

}  // namespace
}  // namespace vpfs::test
