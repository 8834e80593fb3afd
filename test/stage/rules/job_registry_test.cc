#include "stage/rules/job_registry.h"

#include <string>
#include <vector>

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

TEST(JobRegistry, AClientMayHaveSeveralAddresses) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "a", .clients = {"10.1.0.1", "fd00::1"}, .uids = {1001}}));
  ASSERT_TRUE(jobs.add({.jobid = "b", .clients = {"10.2.0.0/16"}, .uids = {1002}}));
  ASSERT_TRUE(jobs.add({.jobid = "c", .clients = {"10.9.0.1"}, .uids = {1001}}));
  const std::vector<Address> node = {address("127.0.0.1"), address("10.2.0.1"), address("10.1.0.1"),
                                     address("fd00::1")};
  EXPECT_TRUE(jobs.admitted("a", node, 1001));
  EXPECT_TRUE(jobs.admitted("b", node, 1002));
  EXPECT_FALSE(jobs.admitted("a", node, 1002));
  EXPECT_FALSE(jobs.admitted("c", node, 1001));
  EXPECT_FALSE(jobs.admitted("a", std::vector<Address>(), 1001));
  const JobRegistry::Job* only = jobs.only_job_of(node, 1001);
  ASSERT_NE(only, nullptr) << "two addresses of one job are not a second job";
  EXPECT_EQ(only->jobid, "a");
  EXPECT_EQ(jobs.only_job_of(node, 1003), nullptr);
  ASSERT_TRUE(jobs.add({.jobid = "d", .clients = {"10.2.0.1"}, .uids = {1001}}));
  EXPECT_EQ(jobs.only_job_of(node, 1001), nullptr) << "by another address";
}

std::string only_job(const JobRegistry& jobs, const std::string& client,
                     std::optional<std::uint32_t> uid = {}) {
  const JobRegistry::Job* const job = jobs.only_job_of(address(client), uid);
  return job == nullptr ? "none" : job->jobid;
}

TEST(JobRegistry, AClientOfOneJobBelongsToIt) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "a", .clients = {"10.0.0.1", "10.0.0.2"}, .uids = {}}));
  ASSERT_TRUE(jobs.add({.jobid = "b", .clients = {"10.0.0.2", "10.1.0.0/16"}, .uids = {}}));
  EXPECT_EQ(only_job(jobs, "10.0.0.1"), "a");
  EXPECT_EQ(only_job(jobs, "::ffff:10.0.0.1", 7), "a");
  EXPECT_EQ(only_job(jobs, "10.1.2.3"), "b");
  EXPECT_EQ(only_job(jobs, "10.0.0.2"), "none") << "two fit";
  EXPECT_EQ(only_job(jobs, "10.0.0.3"), "none");
  ASSERT_TRUE(jobs.add({.jobid = "c", .clients = {"0.0.0.0/0"}, .uids = {}}));
  EXPECT_EQ(only_job(jobs, "10.0.0.1"), "none") << "the block has it too";
  EXPECT_EQ(only_job(jobs, "11.0.0.1"), "c");
}

TEST(JobRegistry, UsersOfOneClientAreToldApartByTheirUids) {
  JobRegistry jobs;
  ASSERT_TRUE(jobs.add({.jobid = "a", .clients = {"10.0.0.1"}, .uids = {1, 2}}));
  EXPECT_FALSE(jobs.only_job_of(address("10.0.0.1"), 3));
  EXPECT_EQ(only_job(jobs, "10.0.0.1"), "a") << "the request shows no uid";
  ASSERT_TRUE(jobs.add({.jobid = "b", .clients = {"10.0.0.0/24"}, .uids = {3}}));
  EXPECT_EQ(only_job(jobs, "10.0.0.1", 1), "a");
  EXPECT_EQ(only_job(jobs, "10.0.0.1", 3), "b");
  EXPECT_EQ(only_job(jobs, "10.0.0.1", 4), "none");
  EXPECT_EQ(only_job(jobs, "10.0.0.1"), "none") << "it may be either";
  ASSERT_TRUE(jobs.add({.jobid = "c", .clients = {"10.0.0.1"}, .uids = {}}));
  EXPECT_EQ(only_job(jobs, "10.0.0.1", 1), "none");
  EXPECT_EQ(only_job(jobs, "10.0.0.1", 4), "c");
}

TEST(JobRegistry, KnowsWhatARegistrationSays) {
  JobRegistry jobs;
  EXPECT_FALSE(jobs.has_users());
  ASSERT_TRUE(jobs.add({.jobid = "a",
                        .clients = {"10.0.0.1", "10.0.0.1"},
                        .uids = {7},
                        .gids = {500, 501},
                        .account = "physics",
                        .nodes = 64}));
  EXPECT_TRUE(jobs.has_users());
  const JobRegistry::Job* const job = jobs.only_job_of(address("10.0.0.1"), 7);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->gids, (std::vector<std::uint64_t>{500, 501}));
  EXPECT_EQ(job->account, "physics");
  EXPECT_EQ(job->nodes, 64U);
}

TEST(JobRegistry, AnEntryWithAMistakeIsRefusedWhole) {
  JobRegistry jobs;
  const auto problem = [&](const RegisteredJob& job) {
    const Result<void> added = jobs.add(job);
    return added ? std::string() : added.error().message;
  };
  EXPECT_EQ(problem({.jobid = "a", .clients = {}, .uids = {}}), "the job 'a' has no client");
  EXPECT_EQ(problem({.jobid = "a", .clients = {"::1", "host"}, .uids = {}}),
            "'host' is not an IP address or CIDR block");
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
