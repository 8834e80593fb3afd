#include "control/site/site_metrics.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "test/control/metrics/exposition.h"
#include "test/support/places.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

SiteNumbers example() {
  SiteNumbers numbers;
  numbers.name = "main";
  numbers.policy = "psfa";
  numbers.term = 7;
  numbers.capacity.bytes = 1000;
  numbers.in_force.bytes = 900;
  numbers.cycles = {
      .cycles = 20, .late = 3, .sum = 2s, .kept = 20, .p50 = 1ms, .p99 = 2ms, .max = 3ms};
  numbers.stages = {{.name = "ds1", .connected = true, .late = true, .rules = "in force"},
                    {.name = "ds2", .connected = true, .rules = "asked"},
                    {.name = "ds3", .late = true}};
  numbers.jobs = {{.name = "a", .weight = 2, .stages = 2, .granted = {.bytes = 600}, .done = 5},
                  {.name = "b", .weight = 1, .stages = 1, .granted = {.bytes = 300}, .done = 9}};
  numbers.lies = 4;
  numbers.certificate_end = WallTime(1790000000s);
  return numbers;
}

TEST(SiteMetrics, AreWellFormedAndSayWhatIsThere) {
  const test::Exposition all = test::read_exposition(site_metrics(example(), "1.2", 10));
  EXPECT_THAT(all.problems, IsEmpty());
  EXPECT_EQ(all.value("vpfs_coordinator_info",
                      {{"name", "main"}, {"policy", "psfa"}, {"version", "1.2"}}),
            1);
  EXPECT_EQ(all.value("vpfs_coordinator_term"), 7);
  EXPECT_EQ(all.value("vpfs_coordinator_divides"), 1);
  SiteNumbers hindered = example();
  hindered.policy_problem = "no floor";
  EXPECT_EQ(
      test::read_exposition(site_metrics(hindered, "1.2", 10)).value("vpfs_coordinator_divides"),
      0);
  EXPECT_EQ(all.value("vpfs_certificate_end_timestamp_seconds"), 1790000000);
  EXPECT_EQ(all.value("vpfs_coordinator_cycle_seconds_count"), 20);
  EXPECT_EQ(all.value("vpfs_coordinator_cycle_seconds_sum"), 2);
  EXPECT_EQ(all.value("vpfs_coordinator_stages", {{"state", "connected"}}), 2);
  EXPECT_EQ(all.value("vpfs_coordinator_stages", {{"state", "late"}}), 1) << "of the connected";
  EXPECT_EQ(all.value("vpfs_coordinator_stages", {{"state", "absent"}}), 1);
  EXPECT_EQ(all.value("vpfs_coordinator_stages_with_rules"), 1);
  EXPECT_EQ(all.value("vpfs_coordinator_lies_total"), 4);
  EXPECT_EQ(all.value("vpfs_coordinator_capacity", {{"resource", "bytes"}}), 1000);
  EXPECT_EQ(all.value("vpfs_coordinator_in_force", {{"resource", "bytes"}}), 900);
  EXPECT_EQ(
      all.value("vpfs_coordinator_job_granted", {{"virtual_pfs", "a"}, {"resource", "bytes"}}),
      600);
}

SiteNumbers example_of_part() {
  SiteNumbers numbers = example();
  numbers.parent.emplace();
  numbers.parent->is_led = true;
  return numbers;
}

TEST(MemberMetrics, AreWellFormedAndSayWhatIsThere) {
  const MemberState state = {.epoch = 65538, .members = 3, .takes_part = true};
  const test::Exposition all = test::read_exposition(member_metrics(example_of_part(), state));
  EXPECT_THAT(all.problems, IsEmpty());
  EXPECT_EQ(all.value("vpfs_member_takes_part"), 1);
  EXPECT_EQ(all.value("vpfs_member_led"), 1);
  EXPECT_EQ(all.value("vpfs_member_view"), 65538);
  EXPECT_EQ(all.value("vpfs_member_members"), 3);
  EXPECT_EQ(all.value("vpfs_member_stages", {{"state", "connected"}}), 2);
  EXPECT_EQ(all.value("vpfs_member_cycle_seconds_count"), 20);
  EXPECT_EQ(all.value("vpfs_member_in_force", {{"resource", "bytes"}}), 900);
}

TEST(MemberMetrics, OfOneThatIsCutOffSaySo) {
  SiteNumbers numbers = example_of_part();
  numbers.parent->is_led = false;
  const test::Exposition all = test::read_exposition(member_metrics(numbers, {}));
  EXPECT_EQ(all.value("vpfs_member_takes_part"), 0);
  EXPECT_EQ(all.value("vpfs_member_led"), 0);
}

// A member's metrics follow those of the coordinator, so no name is in both.
TEST(MemberMetrics, FitBesideThoseOfACoordinator) {
  const test::Exposition both = test::read_exposition(site_metrics(example(), "1.2", 10) +
                                                      member_metrics(example_of_part(), {}));
  EXPECT_THAT(both.problems, IsEmpty());
}

// The file also is what the dashboard and the documents are checked against.
TEST(SiteMetrics, ExampleIsAsInTheFile) {
  const std::filesystem::path file = test::source("test/data/metrics/coordinator.prom");
  std::ostringstream expected;
  expected << std::ifstream(file).rdbuf();
  const std::string text = site_metrics(example(), "0.1.0 (abc)", 10);
  if (std::getenv("VPFS_WRITE_EXAMPLE") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(text, expected.str());
}

TEST(MemberMetrics, ExampleIsAsInTheFile) {
  const std::filesystem::path file = test::source("test/data/metrics/member.prom");
  std::ostringstream expected;
  expected << std::ifstream(file).rdbuf();
  const MemberState state = {.epoch = 65538, .members = 3, .takes_part = true};
  const std::string text = member_metrics(example_of_part(), state);
  if (std::getenv("VPFS_WRITE_EXAMPLE") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(text, expected.str());
}

TEST(SiteMetrics, TheJobsThatHaveDoneMostAreShown) {
  const test::Exposition all = test::read_exposition(site_metrics(example(), "1.2", 1));
  EXPECT_EQ(all.value("vpfs_coordinator_jobs"), 2);
  EXPECT_EQ(all.count("vpfs_coordinator_job_weight"), 1U);
  EXPECT_EQ(all.value("vpfs_coordinator_job_weight", {{"virtual_pfs", "b"}}), 1);
}

}  // namespace
}  // namespace vpfs::coordinator
