#include "tools/vpfsctl/job_stats.h"

#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace vpfs::ctl {
namespace {

using ::testing::HasSubstr;

void set(control::Statistic* statistic, std::uint64_t samples, std::uint64_t min, std::uint64_t max,
         std::uint64_t sum, double sumsq) {
  statistic->set_samples(samples);
  statistic->set_min(min);
  statistic->set_max(max);
  statistic->set_sum(sum);
  statistic->set_sumsq(sumsq);
}

control::VirtualPfs* add_job(control::StatsReply& reply, const std::string& name,
                             const std::string& jobid) {
  auto* each = reply.add_virtual_pfs();
  each->set_name(name);
  each->set_jobid(jobid);
  each->set_since_at(1'700'000'000);
  each->set_snapshot_at(1'700'000'060);
  return each;
}

std::string job_id_line(const std::string& jobid) {
  control::StatsReply reply;
  add_job(reply, "x", jobid);
  std::istringstream lines(job_stats_text(reply));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  return line;
}

// Columns as Lustre 2.15 has them.
TEST(JobStats, AreLustresByteForByte) {
  control::StatsReply reply;
  auto* job = add_job(reply, "job-dd.0", "dd.0");
  set(job->mutable_read_bytes(), 3, 4096, 1048576, 1060864, 1.099545182208e12);
  set(job->mutable_read_usecs(), 3, 120, 40081, 41000, 1.6e9);
  EXPECT_EQ(job_stats_text(reply),
            "job_stats:\n"
            "- job_id:          dd.0\n"
            "  snapshot_time:   1700000060.000000000 secs.nsecs\n"
            "  start_time:      1700000000.000000000 secs.nsecs\n"
            "  elapsed_time:    60.000000000 secs.nsecs\n"
            "  read_bytes:      { samples:           3, unit: bytes, min:     4096, max:  1048576, "
            "sum:          1060864, sumsq:      1099545182208 }\n"
            "  write_bytes:     { samples:           0, unit: bytes, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  read:            { samples:           3, unit: usecs, min:      120, max:    40081, "
            "sum:            41000, sumsq:         1600000000 }\n"
            "  write:           { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  getattr:         { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  setattr:         { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  punch:           { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  sync:            { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  destroy:         { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  create:          { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  statfs:          { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  get_info:        { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  set_info:        { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  quotactl:        { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n"
            "  prealloc:        { samples:           0, unit: usecs, min:        0, max:        0, "
            "sum:                0, sumsq:                  0 }\n");
}

TEST(JobStats, WithoutJobsAreTheHeaderAlone) {
  control::StatsReply reply;
  add_job(reply, "idle", "7")->set_snapshot_at(0);
  EXPECT_EQ(job_stats_text(reply), "job_stats:\n");
}

TEST(JobStats, IdsWithOtherCharactersAreQuotedAsLustreDoes) {
  EXPECT_EQ(job_id_line("4711_3"), "- job_id:          4711_3");
  EXPECT_EQ(job_id_line("a.b-c@n1/d"), "- job_id:          a.b-c@n1/d");
  EXPECT_EQ(job_id_line("7:1001:n1"), "- job_id:          \"7:1001:n1\"");
  EXPECT_EQ(job_id_line("@x"), "- job_id:          \"@x\"");
  EXPECT_EQ(job_id_line("my job\"\n"), "- job_id:          \"my\\x20job\\x22\\x0A\"");
  EXPECT_EQ(job_id_line("\xc3\xbc"), "- job_id:          \"\\xC3\\xBC\"");
}

TEST(JobStats, VirtualPfsesOfOneJobAreOneEntry) {
  control::StatsReply reply;
  auto* reads = add_job(reply, "reads", "7");
  set(reads->mutable_read_bytes(), 2, 10, 20, 30, 500);
  auto* more = add_job(reply, "more", "7");
  set(more->mutable_read_bytes(), 1, 5, 5, 5, 25);
  more->set_since_at(1'600'000'000);
  more->set_snapshot_at(1'800'000'000);
  const YAML::Node jobs = YAML::Load(job_stats_text(reply))["job_stats"];
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]["read_bytes"]["samples"].as<int>(), 3);
  EXPECT_EQ(jobs[0]["read_bytes"]["min"].as<int>(), 5);
  EXPECT_EQ(jobs[0]["read_bytes"]["max"].as<int>(), 20);
  EXPECT_EQ(jobs[0]["read_bytes"]["sum"].as<int>(), 35);
  EXPECT_EQ(jobs[0]["read_bytes"]["sumsq"].as<int>(), 525);
  EXPECT_EQ(jobs[0]["start_time"].as<std::string>(), "1600000000.000000000 secs.nsecs");
  EXPECT_EQ(jobs[0]["snapshot_time"].as<std::string>(), "1800000000.000000000 secs.nsecs");
}

TEST(JobStats, WithoutAJobIdTheNameIsShown) {
  control::StatsReply reply;
  add_job(reply, "default", "");
  EXPECT_THAT(job_stats_text(reply), HasSubstr("- job_id:          default\n"));
}

TEST(JobStats, SquaresBeyondAnIntegerStayAtTheLargest) {
  control::StatsReply reply;
  set(add_job(reply, "x", "x")->mutable_read_bytes(), 1, 1, 1, 1, 1e30);
  EXPECT_THAT(job_stats_text(reply), HasSubstr("sumsq: 18446744073709551615 }"));
}

// The rules of Lustre's documents for this file: YAML of one list of jobs; each begins with its id
// and its times, and each other entry is an operation with samples, a unit, and, of what is summed,
// min, max, sum and the sum of squares. Names are known, units are bytes or usecs.
TEST(JobStats, ReadersThatGoByLustresDocumentsReadThem) {
  control::StatsReply reply;
  for (const char* id : {"dd.0", "7:1001:n1", "my job", "@x"}) {
    auto* job = add_job(reply, id, id);
    set(job->mutable_read_bytes(), 2, 4096, 8192, 12288, 83886080);
    set(job->mutable_write_bytes(), 1, 1, 1, 1, 1);
    set(job->mutable_read_usecs(), 2, 5, 10, 15, 125);
    set(job->mutable_write_usecs(), 1, 3, 3, 3, 9);
  }
  const YAML::Node jobs = YAML::Load(job_stats_text(reply))["job_stats"];
  ASSERT_TRUE(jobs.IsSequence());
  ASSERT_EQ(jobs.size(), 4U);
  EXPECT_EQ(jobs[2]["job_id"].as<std::string>(), "my job");
  EXPECT_EQ(jobs[3]["job_id"].as<std::string>(), "@x");
  const std::regex time(R"(\d+\.\d{9} secs\.nsecs)");
  const std::regex operation(
      "read_bytes|write_bytes|read|write|getattr|setattr|punch|sync|destroy|"
      "create|statfs|get_info|set_info|quotactl|prealloc");
  for (const YAML::Node& job : jobs) {
    for (const auto& entry : job) {
      const auto key = entry.first.as<std::string>();
      if (key == "job_id") continue;
      if (key.ends_with("_time")) {
        EXPECT_TRUE(std::regex_match(entry.second.as<std::string>(), time)) << key;
        continue;
      }
      EXPECT_TRUE(std::regex_match(key, operation)) << key;
      EXPECT_EQ(entry.second["unit"].as<std::string>(),
                key.ends_with("_bytes") ? "bytes" : "usecs");
      const auto samples = entry.second["samples"].as<std::uint64_t>();
      EXPECT_LE(entry.second["min"].as<std::uint64_t>() * samples,
                entry.second["sum"].as<std::uint64_t>());
      EXPECT_GE(entry.second["max"].as<std::uint64_t>() * samples,
                entry.second["sum"].as<std::uint64_t>());
      EXPECT_GE(entry.second["sumsq"].as<std::uint64_t>(), entry.second["sum"].as<std::uint64_t>());
    }
  }
}

}  // namespace
}  // namespace vpfs::ctl
