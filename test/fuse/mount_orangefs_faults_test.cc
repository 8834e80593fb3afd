// A mounted OrangeFS whose servers, proxies or own program go away; and the callers that it names.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::test {
namespace {

using MountOrangefsFaults = MountTest;

MountProcess::Settings mount_of(const std::string& address,
                                std::vector<std::string> options = {"allow_other"}) {
  MountProcess::Settings settings;
  settings.options = std::move(options);
  settings.address = address;
  return settings;
}

constexpr std::size_t kBlock = 65536;

// Writes a file of numbered blocks and reads it back, over and over, until told to stop. Every
// byte is checked; a call that fails is counted. It is a process of its own: one that this one
// starts meanwhile would inherit the file, and closing it waits for the server.
class BlockLoad {
 public:
  explicit BlockLoad(std::filesystem::path path)
      : path_(std::move(path)), counts_(new_counts()), child_(::fork()) {
    if (child_ != 0) return;
    run();
    ::_exit(0);
  }
  ~BlockLoad() {
    stop();
    ::munmap(counts_, sizeof(Counts));
  }
  BlockLoad(const BlockLoad&) = delete;
  BlockLoad& operator=(const BlockLoad&) = delete;

  void stop() {
    counts_->stop = true;
    if (child_ > 0) ::waitpid(std::exchange(child_, -1), nullptr, 0);
  }
  [[nodiscard]] int rounds() const { return counts_->rounds; }
  [[nodiscard]] int failures() const { return counts_->failures; }
  [[nodiscard]] int wrong() const { return counts_->wrong; }

 private:
  struct Counts {
    std::atomic<bool> stop = false;
    std::atomic<int> rounds = 0;
    std::atomic<int> failures = 0;
    std::atomic<int> wrong = 0;
  };

  static Counts* new_counts() {
    void* const memory =
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return new (memory) Counts;
  }

  void run() {
    for (int round = 1; !counts_->stop; ++round) {
      const int file = ::open(path_.c_str(), O_RDWR | O_CREAT, 0644);
      if (file < 0) {
        ++counts_->failures;
        continue;
      }
      bool whole = true;
      for (int block = 0; block < 8; ++block) whole = write(file, block, round) && whole;
      for (int block = 0; block < 8 && whole; ++block) check(file, block, round);
      ::close(file);
      ++counts_->rounds;
    }
  }
  bool write(int file, int block, int round) {
    const std::vector<int> data(kBlock / sizeof(int), (round << 8) + block);
    if (::pwrite(file, data.data(), kBlock, block * static_cast<off_t>(kBlock)) ==
        static_cast<ssize_t>(kBlock)) {
      return true;
    }
    ++counts_->failures;
    return false;
  }
  void check(int file, int block, int round) {
    // Not out of the page cache.
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    std::vector<int> data(kBlock / sizeof(int));
    if (::pread(file, data.data(), kBlock, block * static_cast<off_t>(kBlock)) !=
        static_cast<ssize_t>(kBlock)) {
      ++counts_->failures;
      return;
    }
    for (const int each : data) counts_->wrong += each == (round << 8) + block ? 0 : 1;
  }

  const std::filesystem::path path_;
  Counts* const counts_;
  pid_t child_;
};

TEST_F(MountOrangefsFaults, AServerThatComesBackIsWaitedFor) {
  EmbeddedServers servers(2, "", {}, EmbeddedServers::Engine::directory);
  const MountProcess mount(mount_of(servers.address()));
  BlockLoad load(mount.path() / "file");
  ASSERT_TRUE(comes_true([&] { return load.rounds() > 3; }));
  for (const std::size_t index : {0U, 1U}) {
    (void)servers.server(index).kill();
    const int before = load.rounds();
    servers.restart(index);
    ASSERT_TRUE(comes_true([&] { return load.rounds() > before + 3; }));
  }
  load.stop();
  EXPECT_EQ(load.failures(), 0);
  EXPECT_EQ(load.wrong(), 0);
}

TEST_F(MountOrangefsFaults, AServerThatStaysAwayIsAnError) {
  EmbeddedServers servers(2);
  const MountProcess mount(mount_of(servers.address(), {"allow_other", "retry_for=0.3"}));
  const int file = ::open((mount.path() / "file").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(file, 0);
  std::vector<char> data(1 << 20, 'x');
  ASSERT_EQ(::write(file, data.data(), data.size()), 1 << 20);
  (void)servers.server(0).kill();
  (void)servers.server(1).kill();
  EXPECT_EQ(::pwrite(file, data.data(), data.size(), 0), -1);
  EXPECT_EQ(errno, EIO);
  ::close(file);
  EXPECT_EQ(::mkdir((mount.path() / "d").c_str(), 0700), -1);
  EXPECT_EQ(errno, EIO);
}

TEST_F(MountOrangefsFaults, AProcessThatWaitsForALostServerCanBeKilled) {
  EmbeddedServers servers(1);
  const MountProcess mount(mount_of(servers.address(), {"allow_other", "retry_for=600"}));
  const auto path = mount.path() / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::write(file, "text", 4), 4);
  ::close(file);
  for (const int signal : {SIGSTOP, SIGKILL}) {
    servers.server(0).signal(signal);
    Process reader({"dd", "if=" + path.string(), "of=/dev/null", "iflag=direct", "bs=4096"});
    // It is asleep in the request before it is told to go.
    ASSERT_TRUE(comes_true([&] {
      const std::string wait = read_text(fmt::format("/proc/{}/wchan", reader.pid()));
      return wait.find("fuse") != std::string::npos || wait.find("request_wait") != wait.npos;
    }));
    reader.signal(SIGTERM);
    const auto exit = reader.wait(5s);
    ASSERT_TRUE(exit.has_value()) << "it hangs";
    EXPECT_EQ(exit->signal, SIGTERM);
  }
}

TEST_F(MountOrangefsFaults, AWriteOfAKilledProcessDoesNotLandOnALaterOne) {
  EmbeddedServers servers(1, "", {}, EmbeddedServers::Engine::directory);
  const MountProcess mount(mount_of(servers.address(), {"allow_other", "retry_for=30"}));
  const auto path = mount.path() / "file";
  // It is open before its server goes. Attempts to write come at longer and longer intervals.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  (void)servers.server(0).kill();
  const pid_t killed = ::fork();
  if (killed == 0) {
    const std::vector<char> data(kBlock, 'b');
    (void)!::pwrite(file, data.data(), kBlock, 0);
    ::_exit(0);
  }
  const auto is_asleep_in_write = [](pid_t process) {
    return read_text(fmt::format("/proc/{}/wchan", process)).find("request_wait") !=
           std::string::npos;
  };
  ASSERT_TRUE(comes_true([&] { return is_asleep_in_write(killed); }));
  std::this_thread::sleep_for(1s);  // its attempts are rare by now
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  const pid_t later = ::fork();
  if (later == 0) {
    const std::vector<char> data(kBlock, 'c');
    ::_exit(::pwrite(file, data.data(), kBlock, 0) == static_cast<ssize_t>(kBlock) ? 0 : 1);
  }
  ASSERT_TRUE(comes_true([&] { return is_asleep_in_write(later); }));
  servers.restart(0);
  int status = -1;
  ::waitpid(later, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::this_thread::sleep_for(3s);  // longer than the longest pause between attempts
  const MountProcess other(mount_of(servers.address()));
  EXPECT_EQ(read_text(other.path() / "file"), std::string(kBlock, 'c'));
  ::close(file);
}

TEST_F(MountOrangefsFaults, AMountThatIsKilledLeavesOthersAlone) {
  EmbeddedServers servers(2);
  MountProcess mount(mount_of(servers.address()));
  const MountProcess other(mount_of(servers.address()));
  BlockLoad killed(mount.path() / "killed");
  BlockLoad kept(other.path() / "kept");
  ASSERT_TRUE(comes_true([&] { return killed.rounds() > 3 && kept.rounds() > 3; }));
  mount.kill();
  EXPECT_TRUE(comes_true([&] { return !mount.is_mounted(); }));
  killed.stop();
  const int before = kept.rounds();
  EXPECT_TRUE(comes_true([&] { return kept.rounds() > before + 3; }));
  kept.stop();
  EXPECT_EQ(kept.failures(), 0);
  EXPECT_EQ(kept.wrong() + killed.wrong(), 0);
  // What it had written is there for the next mount.
  mount.start();
  EXPECT_TRUE(std::filesystem::exists(mount.path() / "killed"));
}

TEST_F(MountOrangefsFaults, SignalsOfOtherProgramsDoNotEndIt) {
  EmbeddedServers servers(1);
  MountProcess mount(mount_of(servers.address()));
  BlockLoad load(mount.path() / "file");
  ASSERT_TRUE(comes_true([&] { return load.rounds() > 3; }));
  for (const int signal : {SIGHUP, SIGUSR1}) mount.process().signal(signal);
  const int before = load.rounds();
  EXPECT_TRUE(comes_true([&] { return load.rounds() > before + 10; }));
  load.stop();
  EXPECT_EQ(load.failures() + load.wrong(), 0);
}

TEST_F(MountOrangefsFaults, AMountWithoutAServerSaysSo) {
  const ReservedPort nobody;
  const TemporaryDirectory place;
  Process mount(
      {program("vpfs-mount"), "tcp://" + nobody.address() + "/vpfs", place.path().string(), "-f"});
  const auto exit = mount.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(mount.errors(), ::testing::HasSubstr("cannot mount tcp://" + nobody.address()));
}

// A server behind a proxy. The mount reaches it in the zone tcp-px.
struct ProxiedServer {
  explicit ProxiedServer(const std::string& rules, const std::string& virtual_pfs)
      : proxy({.upstream = port.number(), .virtual_pfs = virtual_pfs, .rules = rules}) {
    const std::string config = directory.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: directory, path: {}/store}}\n",
                    port.address(), proxy.port(), directory.path().string()));
    command = {program("vpfs-server"), "--config", config};
    start();
  }
  void start() {
    server.emplace(command);
    EXPECT_TRUE(server->wait_for_line("ready on")) << server->errors();
  }
  [[nodiscard]] std::string address() const {
    return fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy.port());
  }
  [[nodiscard]] std::uint64_t bytes_of(const std::string& name) {
    for (const nlohmann::json& each : proxy.status()["virtual_pfs"]) {
      if (each["name"] == name) return each["done_bytes"].get<std::uint64_t>();
    }
    return 0;
  }

  TemporaryDirectory directory;
  ReservedPort port;
  ProxyProcess proxy;
  std::vector<std::string> command;
  std::optional<Process> server;
};

TEST_F(MountOrangefsFaults, AProxyKnowsTheJobsBehindAMount) {
  ProxiedServer site(
      "[{match: {jobid: '*'}, virtual_pfs: 'job-{jobid}'}, "
      "{match: {hint: {vpfs: '*'}}, virtual_pfs: 'asked-{vpfs}'}]",
      "'job-{jobid}': {weight: 1}, 'asked-{vpfs}': {weight: 1}");
  const MountProcess mount(mount_of(site.address()));
  const MountProcess other(mount_of(site.address(), {"allow_other", "vpfs=tape"}));
  const auto copy = [](const MountProcess& to, const std::string& job, std::size_t mib) {
    Process dd({"dd", "if=/dev/zero", "of=" + (to.path() / ("of_" + job)).string(), "bs=1M",
                fmt::format("count={}", mib)},
               {{"SLURM_JOB_ID", job}});
    const auto exit = dd.wait();
    EXPECT_TRUE(exit && exit->ok()) << dd.errors();
  };
  copy(mount, "17", 2);
  copy(mount, "18", 3);
  copy(other, "", 4);
  EXPECT_EQ(site.bytes_of("job-17"), 2U << 20);
  EXPECT_EQ(site.bytes_of("job-18"), 3U << 20);
  EXPECT_EQ(site.bytes_of("asked-tape"), 4U << 20);
}

TEST_F(MountOrangefsFaults, AProxyThatIsKilledComesBackWithoutAWrongByte) {
  ProxiedServer site("[]", "default: {weight: 1}");
  const MountProcess mount(mount_of(site.address()));
  BlockLoad load(mount.path() / "file");
  for (int i = 0; i < 3; ++i) {
    const int before = load.rounds();
    ASSERT_TRUE(comes_true([&] { return load.rounds() > before + 3; }));
    site.proxy.kill();
    site.proxy.start();
  }
  const int before = load.rounds();
  ASSERT_TRUE(comes_true([&] { return load.rounds() > before + 3; }));
  load.stop();
  EXPECT_EQ(load.failures(), 0);
  EXPECT_EQ(load.wrong(), 0);
}

// A file of a user on one server, and a process that has it open before that server is stopped.
// It reads when it is told to.
class ReaderOf {
 public:
  ReaderOf(const MountProcess& mount, const std::string& server, uid_t uid, off_t size) {
    const std::string folder = mount.path() / server;
    EXPECT_EQ(::mkdir(folder.c_str(), 0755), 0);
    const std::string layout = "list:" + server;
    EXPECT_EQ(::setxattr(folder.c_str(), "user.vpfs.layout", layout.data(), layout.size(), 0), 0);
    path_ = folder + "/file";
    std::ofstream(path_) << std::string(kBlock, 'x');
    EXPECT_EQ(::truncate(path_.c_str(), size), 0);
    EXPECT_EQ(::pipe(told_.data()), 0);
    EXPECT_EQ(::pipe2(said_.data(), O_NONBLOCK), 0);
    process_ = ::fork();
    if (process_ != 0) {
      EXPECT_TRUE(said()) << "it cannot read";
      return;
    }
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(111);
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    char word = 0;
    ::close(told_[1]);
    // The mount asks for the place of the data with the first read.
    if (file < 0 || ::pread(file, &word, 1, 0) != 1) ::_exit(1);
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    (void)!::write(said_[1], "x", 1);
    if (::read(told_[0], &word, 1) != 1) ::_exit(1);
    if (word == 'r') ::_exit(read_all(file) ? 0 : 2);
    // One page of every two, so that each is a request of its own.
    for (off_t at = 0; at < size; at += 8192) {
      (void)::posix_fadvise(file, at, 4096, POSIX_FADV_WILLNEED);
    }
    // Its end would wait for the server.
    (void)!::write(said_[1], "x", 1);
    ::pause();
  }
  ~ReaderOf() {
    ::kill(process_, SIGKILL);
    if (!ended_) ::waitpid(process_, nullptr, 0);
    for (const int each : {told_[0], told_[1], said_[0], said_[1]}) ::close(each);
  }
  ReaderOf(const ReaderOf&) = delete;
  ReaderOf& operator=(const ReaderOf&) = delete;

  void read() { (void)!::write(told_[1], "r", 1); }
  // False: it has not asked for all within ten seconds.
  [[nodiscard]] bool read_ahead() {
    (void)!::write(told_[1], "a", 1);
    return said();
  }
  // Whether it has ended well within a minute. A mount with a sanitizer needs several seconds for
  // what the other one asked for before.
  [[nodiscard]] bool ends() {
    int status = -1;
    ended_ = comes_true([&] { return ::waitpid(process_, &status, WNOHANG) == process_; },
                        std::chrono::seconds(60));
    return ended_ && status == 0;
  }

 private:
  [[nodiscard]] bool said() const {
    char word = 0;
    return comes_true([&] { return ::read(said_[0], &word, 1) == 1; });
  }
  static bool read_all(int file) {
    std::string data(kBlock, '\0');
    return ::read(file, data.data(), kBlock) == kBlock && data == std::string(kBlock, 'x');
  }

  std::string path_;
  std::array<int, 2> told_ = {};
  std::array<int, 2> said_ = {};
  pid_t process_ = -1;
  bool ended_ = false;
};

// The kernel gives a mount a bounded number of requests that no process waits for.
TEST_F(MountOrangefsFaults, ReadAheadThatWaitsForOneUserDoesNotKeepOthersBack) {
  EmbeddedServers site(2);
  // The kernel does not ask for attributes meanwhile, which may be at the other server.
  MountProcess mount(mount_of(site.address(), {"allow_other", "attr_timeout=1h", "workers=1"}));
  std::filesystem::permissions(mount.scratch(), std::filesystem::perms::all);
  ReaderOf alice(mount, "s0", kAlice, kBlock);
  ReaderOf mallory(mount, "s1", kMallory, off_t{70'000} * 8192);
  site.server(1).signal(SIGSTOP);
  EXPECT_TRUE(mallory.read_ahead());
  alice.read();
  EXPECT_TRUE(alice.ends());
  site.server(1).signal(SIGCONT);
}

}  // namespace
}  // namespace vpfs::test
