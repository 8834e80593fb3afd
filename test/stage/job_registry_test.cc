#include "stage/job_registry.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

Address address(const std::string& text) {
  return Address::parse(text).value();
}

TEST(JobRegistry, AnIdCountsFromItsClientsOnly) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "4711", .clients = {"10.1.0.0/24", "fd00::1"}, .uids = {}}));
  EXPECT_TRUE(jobs.admits("4711", address("10.1.0.77"), std::nullopt));
  EXPECT_TRUE(jobs.admits("4711", address("::ffff:10.1.0.77"), std::nullopt));
  EXPECT_TRUE(jobs.admits("4711", address("fd00::1"), 5));
  EXPECT_FALSE(jobs.admits("4711", address("10.1.1.77"), std::nullopt));
  EXPECT_FALSE(jobs.admits("4711", address("fd00::2"), std::nullopt));
  EXPECT_FALSE(jobs.admits("471", address("10.1.0.77"), std::nullopt));
  EXPECT_FALSE(jobs.admits("", address("10.1.0.77"), std::nullopt));
}

TEST(JobRegistry, AUidIsLookedAtWhereItIsKnownAndAskedFor) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "a", .clients = {"0.0.0.0/0"}, .uids = {1001, 1002}}));
  const Address client = address("10.1.0.1");
  EXPECT_TRUE(jobs.admits("a", client, 1002));
  EXPECT_FALSE(jobs.admits("a", client, 1003));
  EXPECT_TRUE(jobs.admits("a", client, std::nullopt));
}

TEST(JobRegistry, AnEntryWithAMistakeIsRefusedWhole) {
  JobRegistry jobs;
  const auto problem = [&](const RegisteredJob& job) {
    const Result<void> added = jobs.add(job);
    return added ? std::string() : added.error().message;
  };
  EXPECT_EQ(problem({.jobid = "a", .clients = {}, .uids = {}}), "the job 'a' has no client");
  EXPECT_EQ(problem({.jobid = "a", .clients = {"::1", "host"}, .uids = {}}),
            "'host' is no IP address or CIDR block");
  EXPECT_EQ(problem({.jobid = "", .clients = {"::1"}, .uids = {}}),
            "a job id has 1 to 128 bytes of printable ASCII");
  EXPECT_FALSE(jobs.admits("a", address("::1"), std::nullopt));
  EXPECT_EQ(problem({.jobid = "a", .clients = {"::1"}, .uids = {}}), "");
  EXPECT_EQ(problem({.jobid = "a", .clients = {"::2"}, .uids = {}}),
            "the job 'a' is registered already");
  EXPECT_FALSE(jobs.admits("a", address("::2"), std::nullopt));
  EXPECT_EQ(jobs.size(), 1U);
}

}  // namespace
}  // namespace vpfs::stage
