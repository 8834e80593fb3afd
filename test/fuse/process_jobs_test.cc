#include "fuse/process_jobs.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/process_environment.h"
#include "net/descriptor.h"
#include "test/fuse/users.h"
#include "test/support/manual_clock.h"
#include "test/support/process.h"
#include "test/support/start_time.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::kAlice;
using test::kMallory;
using test::kStart;

// Whoever the test is: only root can take the place of another user.
constexpr uid_t kRoot = 0;

const std::vector<std::string> kVariables = {"SLURM_JOB_ID", "PBS_JOBID"};

TEST(JobIn, IsTheFirstVariableThatIsSet) {
  EXPECT_EQ(job_in("A=1\0PBS_JOBID=7.head\0SLURM_JOB_ID=42\0"s, kVariables), "42");
  EXPECT_EQ(job_in("A=1\0PBS_JOBID=7.head\0"s, kVariables), "7.head");
  EXPECT_EQ(job_in("SLURM_JOB_ID=\0PBS_JOBID=7\0"s, kVariables), "7");
  EXPECT_EQ(job_in("XSLURM_JOB_ID=1\0SLURM_JOB_IDS=2\0SLURM_JOB_ID\0"s, kVariables), "");
  EXPECT_EQ(job_in("", kVariables), "");
  EXPECT_EQ(job_in("SLURM_JOB_ID=42", kVariables), "42") << "the last one may lack its NUL";
}

TEST(JobIn, IsNothingThatWouldSpoilAName) {
  EXPECT_EQ(job_in("SLURM_JOB_ID=a b\0"s, kVariables), "");
  EXPECT_EQ(job_in("SLURM_JOB_ID=a\nb\0"s, kVariables), "");
  EXPECT_EQ(job_in("SLURM_JOB_ID=\xff\0"s, kVariables), "");
  EXPECT_EQ(job_in("SLURM_JOB_ID=" + std::string(129, 'x'), kVariables), "");
  EXPECT_EQ(job_in("SLURM_JOB_ID=" + std::string(128, 'x'), kVariables), std::string(128, 'x'));
}

TEST(ProcessJobs, ReadsTheEnvironmentOfAProcess) {
  test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  const test::Process other({"sleep", "60"}, {{"SLURM_JOB_ID", "4711"}});
  // Before it becomes another program the process has the test's environment.
  for (int i = 0; i < 500 && jobs.job_of(other.pid(), kRoot, kRoot).empty(); ++i) {
    ::usleep(10'000);
    clock.set(clock.now() + 11s);
  }
  EXPECT_EQ(jobs.job_of(other.pid(), kRoot, kRoot), "4711");
}

// What /proc shows of it is root's then.
TEST(ProcessJobs, ReadsTheEnvironmentOfAProcessThatHasChangedUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
  const test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  test::Process other({"python3", "-c",
                       "import os, time; os.setgid(1001); os.setuid(1001); "
                       "print('ready', flush=True); time.sleep(60)"},
                      {{"SLURM_JOB_ID", "4711"}});
  ASSERT_TRUE(other.wait_for_line("ready")) << other.errors();
  EXPECT_EQ(jobs.job_of(other.pid(), kAlice, kAlice), "4711");
}

TEST(ProcessJobs, AProcessThatIsGoneHasNone) {
  const test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  test::Process other({"true"}, {{"SLURM_JOB_ID", "4711"}});
  const pid_t pid = other.pid();
  ASSERT_TRUE(other.wait());
  EXPECT_EQ(jobs.job_of(pid, kRoot, kRoot), "");
  EXPECT_EQ(jobs.job_of(0, kRoot, kRoot), "");
}

TEST(ProcessJobs, WhatWasFoundIsKeptForAWhileButNotForAnotherProcess) {
  test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  test::Process other({"sleep", "60"}, {{"SLURM_JOB_ID", "4711"}});
  for (int i = 0; i < 500 && jobs.job_of(other.pid(), kRoot, kRoot).empty(); ++i) {
    ::usleep(10'000);
    clock.set(clock.now() + 11s);
  }
  ASSERT_EQ(jobs.job_of(other.pid(), kRoot, kRoot), "4711");
  (void)other.kill();
  clock.set(clock.now() + 50ms);
  EXPECT_EQ(jobs.job_of(other.pid(), kRoot, kRoot), "4711") << "it is not looked at again yet";
  clock.set(clock.now() + 100ms);
  EXPECT_EQ(jobs.job_of(other.pid(), kRoot, kRoot), "");
}

const std::string kInJob = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n";
const std::string kInSession = "0::/user.slice/user-1001.slice/session-1.scope\n";
const std::string kClaim = "SLURM_JOB_ID=1\0"s;

// The kernel's files, as a node has them.
class NodeOfJobs {
 public:
  explicit NodeOfJobs(JobSource source = JobSource::automatic) : source_(source) {
    std::filesystem::create_directories(root_.path() / "cgroup");
    std::filesystem::permissions(root_.path(), std::filesystem::perms(0755));
  }

  void add_process(pid_t process, const std::string& cgroup, const std::string& environment) {
    const std::filesystem::path folder = root_.path() / "proc" / std::to_string(process);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "cgroup") << cgroup;
    std::ofstream(folder / "environ") << environment;
    // The 22nd field is when it began.
    std::ofstream(folder / "stat") << fmt::format(
        "{} (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 "
        "16 17 18 {} 20\n",
        process, process * 100);
  }
  // Its environment cannot be read until it is let go.
  void add_process_that_keeps_readers_waiting(pid_t process) {
    add_process(process, kInSession, "");
    std::filesystem::remove(environment_of(process));
    ASSERT_EQ(::mkfifo(environment_of(process).c_str(), 0644), 0);
  }
  void let_readers_go(pid_t process) {
    const net::Descriptor other_end(
        ::open(environment_of(process).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(other_end);
    std::filesystem::remove(environment_of(process));
  }
  void add_group(const std::string& path) {
    std::filesystem::create_directories(root_.path() / "cgroup" / path);
  }
  [[nodiscard]] ProcessJobs::Options options() const {
    ProcessJobs::Options options;
    options.source = source_;
    options.processes = root_.path() / "proc";
    options.cgroups = root_.path() / "cgroup";
    return options;
  }

 private:
  [[nodiscard]] std::filesystem::path environment_of(pid_t process) const {
    return root_.path() / "proc" / std::to_string(process) / "environ";
  }

  JobSource source_;
  test::TemporaryDirectory root_;
};

TEST(ProcessJobs, TheControlGroupGoesBeforeTheEnvironment) {
  const test::ManualClock clock{kStart};
  NodeOfJobs node;
  node.add_process(7, kInJob, kClaim);
  ProcessJobs jobs(node.options(), clock);
  EXPECT_EQ(jobs.job_of(7, kRoot, kRoot), "4711");
}

TEST(ProcessJobs, WhereSlurmHasControlGroupsNoEnvironmentCounts) {
  for (const std::string group :
       {"system.slice/slurmstepd.scope", "unified/system.slice/n1_slurmstepd.scope",
        "freezer/slurm", "memory/slurm_n1"}) {
    const test::ManualClock clock{kStart};
    NodeOfJobs node;
    node.add_group(group);
    node.add_process(8, kInSession, kClaim);
    ProcessJobs jobs(node.options(), clock);
    EXPECT_EQ(jobs.source(), "cgroup");
    EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "") << group;
  }
}

TEST(ProcessJobs, OneProcessInAControlGroupOfSlurmShowsThatSlurmRuns) {
  test::ManualClock clock{kStart};
  NodeOfJobs node;
  node.add_process(7, kInJob, "");
  node.add_process(8, kInSession, kClaim);
  ProcessJobs jobs(node.options(), clock);
  EXPECT_EQ(jobs.source(), "environment");
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "1");
  EXPECT_EQ(jobs.job_of(7, kRoot, kRoot), "4711");
  clock.set(clock.now() + 1s);
  EXPECT_EQ(jobs.source(), "cgroup");
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "");
}

TEST(ProcessJobs, ControlGroupsThatComeLaterAreSeen) {
  test::ManualClock clock{kStart};
  NodeOfJobs node;
  node.add_group("user.slice/slurmstepd.scope");
  node.add_group("user.slice/user-1001.slice/slurm");
  node.add_process(8, kInSession, kClaim);
  ProcessJobs jobs(node.options(), clock);
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "1");
  node.add_group("system.slice/slurmstepd.scope");
  clock.set(clock.now() + 11s);
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "");
}

TEST(ProcessJobs, TheSourceMayBeChosen) {
  const test::ManualClock clock{kStart};
  NodeOfJobs by_group(JobSource::cgroup);
  by_group.add_process(7, kInJob, kClaim);
  by_group.add_process(8, kInSession, kClaim);
  ProcessJobs grouped(by_group.options(), clock);
  EXPECT_EQ(grouped.job_of(7, kRoot, kRoot), "4711");
  EXPECT_EQ(grouped.job_of(8, kRoot, kRoot), "");
  NodeOfJobs by_environment(JobSource::environment);
  by_environment.add_process(7, kInJob, kClaim);
  ProcessJobs claimed(by_environment.options(), clock);
  EXPECT_EQ(claimed.job_of(7, kRoot, kRoot), "1");
}

TEST(ProcessJobs, AProcessThatMovesToAnotherControlGroupIsSeenThereAtOnce) {
  test::ManualClock clock{kStart};
  NodeOfJobs node;
  node.add_group("system.slice/slurmstepd.scope");
  node.add_process(8, kInSession, kClaim);
  ProcessJobs jobs(node.options(), clock);
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "");
  node.add_process(8, kInJob, kClaim);
  clock.set(clock.now() + 101ms);
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "4711");
}

TEST(ProcessJobs, AnEnvironmentOfAnyLengthIsReadUpToAMiB) {
  const test::ManualClock clock{kStart};
  NodeOfJobs node;
  for (const std::size_t before : {std::size_t{100}, std::size_t{8191}, std::size_t{100'000}}) {
    node.add_process(8, kInSession, "A=" + std::string(before, 'x') + "\0"s + kClaim);
    ProcessJobs jobs(node.options(), clock);
    EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "1") << before;
  }
  node.add_process(8, kInSession, "A=" + std::string(1U << 20, 'x') + "\0"s + kClaim);
  ProcessJobs jobs(node.options(), clock);
  EXPECT_EQ(jobs.job_of(8, kRoot, kRoot), "");
}

TEST(ProcessEnvironment, TakesNoMoreMemoryThanItHas) {
  NodeOfJobs node;
  node.add_process(8, kInSession, kClaim);
  const std::string text = environment_of(8, node.options().processes);
  EXPECT_EQ(text, kClaim);
  EXPECT_LE(text.capacity(), 16U << 10);
}

TEST(ProcessJobs, AProcessThatKeepsReadersWaitingHasNoJobMeanwhile) {
  const test::ManualClock clock{kStart};
  NodeOfJobs node(JobSource::environment);
  node.add_process(7, kInSession, kClaim);
  node.add_process_that_keeps_readers_waiting(8);
  ProcessJobs::Options options = node.options();
  options.patience = 20ms;
  ProcessJobs jobs(options, clock);
  EXPECT_EQ(jobs.job_of(8, kMallory, kMallory), "");
  options.patience = 10s;
  ProcessJobs patient(options, clock);
  EXPECT_EQ(patient.job_of(7, kMallory, kMallory), "1");
  node.let_readers_go(8);
  node.add_process(8, kInSession, kClaim);
  EXPECT_EQ(patient.job_of(8, kMallory, kMallory), "1") << "that it had none is not kept";
}

TEST(ProcessJobs, AUserWhoseProcessesKeepReadersWaitingHoldsUpOthersOnlyForAMoment) {
  test::ManualClock clock{kStart};
  NodeOfJobs node(JobSource::environment);
  node.add_process(7, kInSession, kClaim);
  node.add_process_that_keeps_readers_waiting(8);
  ProcessJobs::Options options = node.options();
  options.patience = 200ms;
  ProcessJobs jobs(options, clock);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(jobs.job_of(8, kMallory, kMallory), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s) << "20 s if all had the same time";
  EXPECT_EQ(jobs.job_of(7, kAlice, kAlice), "1") << "Mallory has not all threads";
  node.let_readers_go(8);
  node.add_process(8, kInSession, kClaim);
  clock.set(clock.now() + 11s);
  EXPECT_EQ(jobs.job_of(8, kMallory, kMallory), "1") << "it has the whole time again";
}

TEST(ProcessJobs, OneJobMayHaveTheWholeMount) {
  const test::ManualClock clock{kStart};
  ProcessJobs jobs({.always = "night"}, clock);
  EXPECT_EQ(jobs.job_of(::getpid(), kRoot, kRoot), "night");
}

}  // namespace
}  // namespace vpfs::fuse
