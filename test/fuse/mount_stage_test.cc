// A mount is a stage: its requests are told apart, held and let go as a proxy's are.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using MountStage = MountTest;

// A byte a second for job `slow`, nothing in the way of others.
constexpr const char* kSlow = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: 1 B/s, burst: 1 B}, quick: {}, default: {}}
rules:
  - match: {jobid: slow}
    virtual_pfs: slow
  - match: {jobid: quick}
    virtual_pfs: quick
)";

// A process of a job that writes `size` bytes to a file, unbuffered.
Process writer(const MountProcess& mount, const std::string& job, const std::string& size = "8M") {
  const std::string file = mount.path() / job;
  return Process({"dd", "if=/dev/zero", "of=" + file, "bs=" + size, "count=1", "conv=fsync"},
                 {{"SLURM_JOB_ID", job}});
}

nlohmann::json row_of(MountProcess& mount, const std::string& name) {
  const nlohmann::json status = mount.status();
  for (const nlohmann::json& each : status["virtual_pfs"]) {
    if (each["name"] == name) return each;
  }
  return {};
}

TEST_F(MountStage, AJobThatIsHeldStallsNoOther) {
  MountProcess mount({.config = kSlow});
  Process slow = writer(mount, "slow");
  ASSERT_TRUE(comes_true([&] { return mount.status()["queued"] > 0; }));
  for (int i = 0; i < 5; ++i) {
    Process quick = writer(mount, "quick");
    const auto exit = quick.wait();
    EXPECT_TRUE(exit && exit->ok()) << quick.errors();
  }
  EXPECT_TRUE(slow.running());
  EXPECT_THAT(mount.ask({"stat"}), HasSubstr("slow"));
  (void)slow.kill();
}

// Linux 6.6 and later let files that are open for direct I/O be mapped (MountPoint).
bool kernel_has_direct_io() {
  utsname system = {};
  int major = 0;
  int minor = 0;
  return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(6, 6);
}

// Processes that write one file together can keep a queue, if they write past the page cache.
TEST_F(MountStage, WritersOfOneFileAreHeldTogether) {
  if (!kernel_has_direct_io()) GTEST_SKIP() << "the kernel is older than Linux 6.6";
  MountProcess mount({.config = kSlow});
  const std::string below = mount.below() / "file";
  std::ofstream(below) << "";
  ASSERT_EQ(::truncate(below.c_str(), 64 << 20), 0);
  std::vector<Process> writers;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::string> command = {
        "dd",           "if=/dev/zero", "of=" + (mount.path() / "file").string(),
        "bs=1M",        "count=8",      "seek=" + std::to_string(8 * i),
        "oflag=direct", "conv=notrunc"};
    writers.push_back(Process(std::move(command), {{"SLURM_JOB_ID", "slow"}}));
  }
  EXPECT_TRUE(mount.wait_for_queued(4));
  for (Process& each : writers) (void)each.kill();
}

TEST_F(MountStage, AProcessThatIsHeldCanBeKilled) {
  MountProcess mount({.config = kSlow});
  for (const int signal : {SIGKILL, SIGTERM, SIGQUIT}) {
    Process slow = writer(mount, "slow");
    ASSERT_TRUE(mount.wait_for_queued(1)) << signal;
    slow.signal(signal);
    const auto exit = slow.wait(5s);
    ASSERT_TRUE(exit) << "signal " << signal << " does not end it";
    EXPECT_EQ(exit->signal, signal);
    EXPECT_TRUE(mount.wait_for_queued(0));
  }
  EXPECT_EQ(mount.idle_status()["outstanding"], 0);
}

TEST_F(MountStage, ASignalThatEndsItMayComeBehindOneThatDoesNot) {
  MountProcess mount({.config = kSlow});
  Process slow = writer(mount, "slow");
  ASSERT_TRUE(mount.wait_for_queued(1));
  slow.signal(SIGUSR1);  // dd handles it
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(slow.running());
  slow.signal(SIGTERM);
  const auto exit = slow.wait(5s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGTERM);
}

TEST_F(MountStage, ASignalThatAProcessHandlesDoesNotEndItsWrite) {
  MountProcess mount({.config = kSlow});
  const std::string file = mount.path() / "slow";
  Process process(
      {"bash", "-c", "trap 'echo caught' USR1; dd if=/dev/zero of=" + file + " bs=8M count=1"},
      {{"SLURM_JOB_ID", "slow"}});
  ASSERT_TRUE(mount.wait_for_queued(1));
  process.signal(SIGUSR1);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(mount.status()["queued"], 1);
  EXPECT_THAT(mount.ask({"bypass", "on"}), Not(HasSubstr("refused")));
  const auto exit = process.wait(10s);
  EXPECT_TRUE(exit && exit->ok()) << process.errors();
  EXPECT_EQ(std::filesystem::file_size(mount.below() / "slow"), 8U << 20);
}

TEST_F(MountStage, EndsAtOnceAlthoughRequestsAreHeld) {
  MountProcess mount(
      {.config = std::string("mount: {drain: 1s, status_file: \"{status_file}\"}\n") +
                 std::string(kSlow).substr(std::string(kSlow).find("scheduler"))});
  Process slow = writer(mount, "slow");
  ASSERT_TRUE(mount.wait_for_queued(1));
  mount.process().signal(SIGTERM);
  const auto exit = mount.process().wait(15s);
  EXPECT_TRUE(exit && exit->ok()) << mount.process().errors();
  const auto failed = slow.wait(10s);
  ASSERT_TRUE(failed) << "its request has no answer";
  EXPECT_FALSE(failed->ok());
}

TEST_F(MountStage, TheJobIsThatOfTheProcessThatOpenedTheFile) {
  MountProcess mount({.config = kSlow, .options = {"allow_other,job_variables=MY_JOB"}});
  const std::string file = mount.path() / "file";
  Process mine({"dd", "if=/dev/zero", "of=" + file, "bs=1M", "count=4"}, {{"MY_JOB", "quick"}});
  const auto exit = mine.wait();
  ASSERT_TRUE(exit && exit->ok()) << mine.errors();
  EXPECT_TRUE(comes_true([&] { return row_of(mount, "quick")["done_bytes"] == 4U << 20; }));
  EXPECT_THAT(mount.ask({"who", "quick"}), HasSubstr("quick"));
}

TEST_F(MountStage, AMountMayBelongToOneJob) {
  MountProcess mount({.config = kSlow, .options = {"allow_other,jobid=quick"}});
  std::ofstream(mount.path() / "file") << "text";
  // A write is counted after its answer.
  EXPECT_TRUE(comes_true([&] { return row_of(mount, "quick")["done_bytes"] == 4; }));
}

TEST_F(MountStage, ItsRulesChangeWhileItRuns) {
  MountProcess mount({.config = kSlow});
  Process slow = writer(mount, "slow");
  ASSERT_TRUE(comes_true([&] { return mount.status()["queued"] > 0; }));
  EXPECT_THAT(mount.ask({"rule", "start", "free", "jobid={slow}", "rate=1GiB/s"}),
              Not(HasSubstr("refused")));
  // Open files follow the new rule, but requests that are held already stay in their queue.
  EXPECT_THAT(mount.ask({"rule", "list"}), HasSubstr("free"));
  (void)slow.kill();
  Process again = writer(mount, "slow");
  const auto exit = again.wait();
  EXPECT_TRUE(exit && exit->ok()) << again.errors();
}

TEST_F(MountStage, NamesAndAttributesWaitTheirTurnWhereTheConfigurationSaysSo) {
  MountProcess mount({.config = R"(
mount: {status_file: "{status_file}"}
scheduler: {policy: tbf, schedule: [io, metadata]}
virtual_pfs: {slow: {operations: 1}, default: {}}
rules:
  - match: {jobid: slow}
    virtual_pfs: slow
)"});
  std::filesystem::create_directory(mount.below() / "d");
  Process slow({"find", mount.path() / "d", "-newer", "/etc/hostname"}, {{"SLURM_JOB_ID", "slow"}});
  Process more({"bash", "-c", "for i in $(seq 50); do ls -l " + mount.path().string() + "; done"},
               {{"SLURM_JOB_ID", "slow"}});
  EXPECT_TRUE(comes_true([&] { return mount.status()["queued"] > 0; }));
  Process quick({"ls", "-l", mount.path()});
  const auto exit = quick.wait(5s);
  EXPECT_TRUE(exit && exit->ok());
  (void)more.kill();
  (void)slow.kill();
}

}  // namespace
}  // namespace vpfs::test
