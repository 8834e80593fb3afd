#include "stage/config/job_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/proxy/config_text.h"

namespace vpfs::proxy {
namespace {

using stage::RegisteredJob;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string errors_of_jobs(const std::string& jobs) {
  return errors_of(kMinimal + jobs);
}

std::string errors_of_entry(const std::string& entry) {
  return errors_of_jobs("jobs: registered\nregistered_jobs:\n  - {" + entry + "}\n");
}

TEST(JobConfig, WithoutItEveryJobIdCounts) {
  ConfigErrors errors("p.yaml");
  EXPECT_FALSE(parse_config(kMinimal, errors).only_registered_jobs);
  EXPECT_FALSE(parse_config(std::string(kMinimal) + "jobs: trust\n", errors).only_registered_jobs);
  EXPECT_EQ(errors.to_string(), "");
}

TEST(JobConfig, AnEntryHasItsIdItsClientsAndPerhapsItsUsers) {
  ConfigErrors errors("p.yaml");
  const Config config =
      parse_config(std::string(kMinimal) +
                       "jobs: registered\nregistered_jobs:\n"
                       "  - {jobid: '4711', client: [10.1.0.0/24, ::1], uid: [1001, 0]}\n"
                       "  - {jobid: 4712, client: 10.1.1.7}\n",
                   errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_TRUE(config.only_registered_jobs);
  EXPECT_EQ(config.jobs,
            (std::vector<stage::RegisteredJob>{
                {.jobid = "4711", .clients = {"10.1.0.0/24", "::1"}, .uids = {1001, 0}},
                {.jobid = "4712", .clients = {"10.1.1.7"}, .uids = {}}}));
}

TEST(JobConfig, EveryMistakeIsToldWithItsPlace) {
  const std::string at = "p.yaml:4: registered_jobs[0].";
  EXPECT_EQ(errors_of_entry("jobid: a"), at + "client: is missing\n");
  EXPECT_EQ(errors_of_entry("client: ::1"), at + "jobid: is missing\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: []"),
            at + "client: is empty: give it a value, or leave it out\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: [::1, 10.0.0.0/40]"),
            at + "client: '10.0.0.0/40' is not an IP address or CIDR block\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: ::1, uid: []"),
            at + "uid: is empty: give it a value, or leave it out\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: ::1, uid: root"),
            at + "uid: 'root': names of users cannot be looked up here\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: ::1, uid: -1"),
            at + "uid: '-1' is not a number from 0 to 4294967295\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: ::1, account: \"\", nodes: 0"),
            at + "account: must be 1 to 128 bytes of printable ASCII\n" + at +
                "nodes: \"0\" is out of range: 1 to 10000000\n");
  EXPECT_EQ(errors_of_entry("jobid: \"a\\n\", client: ::1"),
            at + "jobid: must be 1 to 128 bytes of printable ASCII\n");
  EXPECT_EQ(errors_of_entry("jobid: a, client: ::1}\n  - {jobid: a, client: ::2"),
            "p.yaml:5: registered_jobs[1].jobid: the job 'a' is registered already\n");
}

// Jobs may be registered later.
TEST(JobConfig, WithoutAJobNoJobIdCountsYet) {
  const auto warnings_of = [](const std::string& jobs) {
    ConfigErrors errors("p.yaml");
    stage::warn_of_no_jobs(parse_config(kMinimal + jobs, errors), errors);
    EXPECT_EQ(errors.to_string(), "");
    return errors.warnings();
  };
  const std::string none =
      "p.yaml:2: jobs: no job is in `registered_jobs`: no job id counts until jobs are registered";
  EXPECT_THAT(warnings_of("jobs: registered\n"), ElementsAre(none));
  EXPECT_THAT(warnings_of("jobs: registered\nregistered_jobs: []\n"), ElementsAre(none));
  EXPECT_THAT(warnings_of("jobs: registered\nregistered_jobs: [{jobid: a, client: ::1}]\n"),
              IsEmpty());
  EXPECT_THAT(warnings_of(""), IsEmpty());
}

TEST(JobConfig, JobsMayBeRegisteredWhereEveryJobIdCounts) {
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(
      "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: beegfs}\n"
      "registered_jobs: [{jobid: a, client: '10.0.0.[1-2]', gid: 7, account: x, nodes: 2}]\n",
      errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_FALSE(config.only_registered_jobs);
  EXPECT_THAT(config.jobs, ElementsAre(stage::RegisteredJob{.jobid = "a",
                                                            .clients = {"10.0.0.1", "10.0.0.2"},
                                                            .uids = {},
                                                            .gids = {7},
                                                            .account = "x",
                                                            .nodes = 2}));
}

TEST(JobConfig, TheModeIsOneOfTwo) {
  EXPECT_EQ(errors_of_jobs("jobs: maybe\n"),
            "p.yaml:2: jobs: \"maybe\" is not one of: trust, registered\n");
}

TEST(JobConfig, AProtocolWithoutHintsHasNoJobsToRegister) {
  ConfigErrors errors("p.yaml");
  (void)parse_config(
      "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: beegfs}\n"
      "jobs: registered\n"
      "registered_jobs: [{jobid: a, client: ::1}]\n",
      errors);
  EXPECT_EQ(errors.to_string(), "p.yaml:2: jobs: the protocol beegfs shows no job ids\n");
}

}  // namespace
}  // namespace vpfs::proxy
