#include "control/admin/jobs_with_io.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using std::chrono::seconds;

constexpr TimePoint kNow = TimePoint(std::chrono::hours(5));

StageSnapshot::Row row_of(const std::string& jobid, Duration ago) {
  StageSnapshot::Row row;
  row.jobid = jobid;
  row.statistics.since = kNow - std::chrono::hours(1);
  row.statistics.last = kNow - ago;
  return row;
}

stage::Config config_with(const std::vector<std::string>& jobs) {
  stage::Config config;
  for (const std::string& each : jobs) {
    stage::RegisteredJob job;
    job.jobid = each;
    config.jobs.push_back(std::move(job));
  }
  return config;
}

TEST(JobsWithIo, CountsEachJobThatDidIoLatelyAndThoseThatAreRegistered) {
  StageSnapshot snapshot;
  snapshot.at = kNow;
  snapshot.rows = {row_of("1", seconds(1)), row_of("2", seconds(59)), row_of("2", seconds(1)),
                   row_of("3", seconds(61)), row_of("", seconds(1))};
  const JobsWithIo jobs = jobs_with_io(snapshot, config_with({"2", "3", "9"}));
  EXPECT_EQ(jobs.all, 2U);
  EXPECT_EQ(jobs.registered, 1U) << "3 did nothing lately, and 9 never did";
}

TEST(JobsWithIo, AJobWhoseRequestsAllWaitDoesIo) {
  StageSnapshot snapshot;
  snapshot.at = kNow;
  StageSnapshot::Row waits;
  waits.jobid = "1";
  waits.counters.queued.requests = 1;
  snapshot.rows = {waits};
  EXPECT_EQ(jobs_with_io(snapshot, config_with({"1"})).registered, 1U);
  snapshot.rows.front().counters.queued.requests = 0;
  EXPECT_EQ(jobs_with_io(snapshot, config_with({"1"})).all, 0U);
}

}  // namespace
}  // namespace vpfs::control
