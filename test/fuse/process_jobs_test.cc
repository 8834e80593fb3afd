#include "fuse/process_jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/manual_clock.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr TimePoint kStart{1h};
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
  for (int i = 0; i < 500 && jobs.job_of(other.pid()).empty(); ++i) {
    ::usleep(10'000);
    clock.set(clock.now() + 11s);
  }
  EXPECT_EQ(jobs.job_of(other.pid()), "4711");
}

TEST(ProcessJobs, AProcessThatIsGoneHasNone) {
  const test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  test::Process other({"true"}, {{"SLURM_JOB_ID", "4711"}});
  const pid_t pid = other.pid();
  ASSERT_TRUE(other.wait());
  EXPECT_EQ(jobs.job_of(pid), "");
  EXPECT_EQ(jobs.job_of(0), "");
}

TEST(ProcessJobs, WhatWasFoundIsKeptForAWhileButNotForAnotherProcess) {
  test::ManualClock clock{kStart};
  ProcessJobs jobs({}, clock);
  test::Process other({"sleep", "60"}, {{"SLURM_JOB_ID", "4711"}});
  for (int i = 0; i < 500 && jobs.job_of(other.pid()).empty(); ++i) {
    ::usleep(10'000);
    clock.set(clock.now() + 11s);
  }
  ASSERT_EQ(jobs.job_of(other.pid()), "4711");
  (void)other.kill();
  clock.set(clock.now() + 50ms);
  EXPECT_EQ(jobs.job_of(other.pid()), "4711") << "nobody looked";
  clock.set(clock.now() + 100ms);
  EXPECT_EQ(jobs.job_of(other.pid()), "");
}

TEST(ProcessJobs, OneJobMayHaveTheWholeMount) {
  const test::ManualClock clock{kStart};
  ProcessJobs jobs({.always = "night"}, clock);
  EXPECT_EQ(jobs.job_of(::getpid()), "night");
}

}  // namespace
}  // namespace vpfs::fuse
