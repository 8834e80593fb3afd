// What processes that are killed had asked of a mounted OrangeFS while its server was away. It
// happens all the same when the server is back.
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/message.h"
#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::test {
namespace {

using KilledChanges = MountTest;

constexpr std::size_t kAppended = 65536;

MountProcess::Settings mount_waiting_for(const std::string& address) {
  MountProcess::Settings settings;
  settings.options = {"allow_other", "retry_for=30"};
  settings.address = address;
  return settings;
}

// A process that has a file open, appends a block or cuts the file when told to, and ends. The test
// itself must not have the file open: a server that it starts would close it, and that waits for
// the server.
class Appender {
 public:
  static constexpr char kCuts = 0;

  Appender(const std::filesystem::path& path, char filled) : child_(::fork()) {
    if (child_ == 0) {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      (void)::raise(SIGSTOP);
      if (filled == kCuts) ::_exit(::ftruncate(file, 0));
      const std::vector<char> data(kAppended, filled);
      ::_exit(::write(file, data.data(), kAppended) == static_cast<ssize_t>(kAppended) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  // Returns once `mount` has the block. The kernel forgets the write of a process that is killed
  // before.
  void append(MountProcess& mount) const { go_on(mount, kAppended); }
  // The same of the truncation.
  void cut(MountProcess& mount) const {
    go_on(mount, sizeof(fuse_in_header) + sizeof(fuse_setattr_in));
  }
  void kill() const { ::kill(child_, SIGKILL); }
  // How it ended.
  [[nodiscard]] int status() const {
    int status = -1;
    ::waitpid(child_, &status, 0);
    return status;
  }

 private:
  void go_on(MountProcess& mount, std::uint64_t bytes) const {
    const auto received = [&] {
      const std::string counts = read_text(fmt::format("/proc/{}/io", mount.process().pid()));
      return std::stoull(counts.substr(counts.find(' ')));  // rchar is the first
    };
    const auto before = received();
    ::kill(child_, SIGCONT);
    EXPECT_TRUE(comes_true([&] { return received() >= before + bytes; }));
  }

  const pid_t child_;
};

TEST_F(KilledChanges, AnAppendFollowsThatOfAKilledProcess) {
  EmbeddedServers servers(1, "", {}, EmbeddedServers::Engine::directory);
  MountProcess mount(mount_waiting_for(servers.address()));
  const auto path = mount.path() / "file";
  const Appender killed(path, 'b');
  const Appender later(path, 'c');
  (void)servers.server(0).kill();
  killed.append(mount);
  killed.kill();
  EXPECT_TRUE(WIFSIGNALED(killed.status()));
  later.append(mount);
  servers.restart(0);
  EXPECT_EQ(later.status(), 0);
  const MountProcess other(mount_waiting_for(servers.address()));
  const std::string found = read_text(other.path() / "file");
  EXPECT_EQ(found.size(), 2 * kAppended);
  EXPECT_TRUE(found == std::string(kAppended, 'b') + std::string(kAppended, 'c'));
}

TEST_F(KilledChanges, AnAppendFollowsTheTruncationOfAKilledProcess) {
  EmbeddedServers servers(1, "", {}, EmbeddedServers::Engine::directory);
  MountProcess mount(mount_waiting_for(servers.address()));
  const auto path = mount.path() / "file";
  std::ofstream(path) << std::string(3 * kAppended, 'a');
  const Appender killed(path, Appender::kCuts);
  const Appender later(path, 'c');
  const Appender last(path, 'd');
  (void)servers.server(0).kill();
  killed.cut(mount);
  killed.kill();
  EXPECT_TRUE(WIFSIGNALED(killed.status()));
  later.append(mount);
  servers.restart(0);
  EXPECT_EQ(later.status(), 0);
  last.append(mount);
  EXPECT_EQ(last.status(), 0);
  const MountProcess other(mount_waiting_for(servers.address()));
  const std::string found = read_text(other.path() / "file");
  EXPECT_EQ(found.size(), 2 * kAppended);
  EXPECT_TRUE(found == std::string(kAppended, 'c') + std::string(kAppended, 'd'));
}

}  // namespace
}  // namespace vpfs::test
