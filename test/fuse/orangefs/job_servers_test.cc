#include "fuse/orangefs/job_servers.h"

#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "test/support/manual_clock.h"
#include "test/support/process.h"
#include "test/support/start_time.h"

namespace vpfs::fuse::pvfs {
namespace {

using namespace std::chrono_literals;
using test::kStart;
using ::testing::ElementsAre;
using ::testing::Pointee;

LayoutServers servers(std::size_t count) {
  std::vector<LayoutServer> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({.alias = fmt::format("s{}", i), .host = fmt::format("n{}", i)});
  }
  return LayoutServers(std::move(all));
}

TEST(JobServers, AreThoseOnTheNodesOfTheList) {
  const test::ManualClock clock{kStart};
  const LayoutServers all = servers(3);
  JobServers jobs(all, clock);
  EXPECT_THAT(jobs.of_list("n[1-2],x", 1), Pointee(ElementsAre(false, true, true)));
  EXPECT_THAT(jobs.of_list("x", 1), Pointee(ElementsAre(false, false, false)));
  EXPECT_EQ(jobs.of_list("", 1), nullptr);
  EXPECT_EQ(jobs.of_list("n[1-", 1), nullptr);
}

TEST(JobServers, OfAJobAreLookedUpOnce) {
  const test::ManualClock clock{kStart};
  const LayoutServers all = servers(3);
  JobServers jobs(all, clock);
  const JobServers::Answer first = jobs.of_list("n1", 1);
  EXPECT_EQ(jobs.of_list("n1", 2), first) << "the same object";
  // Many lists displace it, and it is looked up again.
  for (int i = 0; i < 1000; ++i) (void)jobs.of_list(fmt::format("m{}", i), 3);
  EXPECT_NE(jobs.of_list("n1", 1), first);
  EXPECT_THAT(jobs.of_list("n1", 1), Pointee(ElementsAre(false, true, false)));
}

TEST(JobServers, AreReadInTheEnvironmentOfAProcess) {
  test::ManualClock clock{kStart};
  const LayoutServers all = servers(2);
  JobServers jobs(all, clock);
  const test::Process other({"sleep", "60"}, {{"SLURM_JOB_NODELIST", "n[1-1]"}});
  // Before it becomes another program the process has the test's environment.
  for (int i = 0; i < 500 && !jobs.of(other.pid(), ::getuid(), ::getgid()); ++i) {
    ::usleep(10'000);
    clock.set(clock.now() + 1s);
  }
  EXPECT_THAT(jobs.of(other.pid(), ::getuid(), ::getgid()), Pointee(ElementsAre(false, true)));
}

}  // namespace
}  // namespace vpfs::fuse::pvfs
