// What a caller sees that has the right to see its own jobs only.
#include <gmock/gmock.h>

#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class OwnJobs : public AdministrationTest {
 protected:
  void SetUp() override {
    AdministrationTest::SetUp();
    ASSERT_EQ(why_not(ask(job_of("mine", 1001, {"10.0.0.1"}))), "");
    ASSERT_EQ(why_not(ask(job_of("theirs", 1002, {"10.0.0.2"}))), "");
    stage_->serve(stage_->find("mine", "10.0.0.1"));
    stage_->serve(stage_->find("theirs", "10.0.0.2"));
    wall_ += std::chrono::seconds(1);
  }
  static std::vector<std::string> names(const Envelope& reply) {
    std::vector<std::string> found;
    for (const VirtualPfs& each : reply.stats_reply().virtual_pfs()) found.push_back(each.name());
    return found;
  }
  static Client client_of(const std::string& address, const std::string& jobid, std::uint32_t uid) {
    Client client;
    client.set_address(address);
    client.set_connections(1);
    Seen& seen = *client.add_seen();
    seen.set_virtual_pfs("job-" + jobid);
    seen.set_rule("job-{jobid}");
    seen.set_jobid(jobid);
    seen.set_uid(uid);
    return client;
  }
};

TEST_F(OwnJobs, StatisticsHaveTheVirtualPfsesOfOwnJobsAlone) {
  EXPECT_THAT(names(stats()), UnorderedElementsAre("default", "job-mine", "job-theirs"));
  const Envelope own = stats(kAlice);
  EXPECT_THAT(names(own), ElementsAre("job-mine"));
  EXPECT_TRUE(own.stats_reply().partial());
  EXPECT_EQ(own.stats_reply().rules_size(), 0);
  EXPECT_EQ(own.stats_reply().upstream(), "");
  EXPECT_FALSE(own.stats_reply().has_retired()) << "sums of others' jobs";
  EXPECT_EQ(own.stats_reply().virtual_pfs(0).read().bytes(), 1000U);
  const Caller nobody = {.name = "CN=x", .from = "10.0.0.9", .rights = Rights::own, .uid = {}};
  EXPECT_EQ(stats(nobody).stats_reply().virtual_pfs_size(), 0);
}

TEST_F(OwnJobs, TheStageIsReadAtMostOnceASecondForSuchCallers) {
  EXPECT_EQ(stats(kAlice).stats_reply().virtual_pfs(0).read().requests(), 1U);
  stage_->serve(stage_->find("mine", "10.0.0.1"));
  EXPECT_EQ(stats(kAlice).stats_reply().virtual_pfs(0).read().requests(), 1U);
  wall_ += std::chrono::seconds(1);
  EXPECT_EQ(stats(kAlice).stats_reply().virtual_pfs(0).read().requests(), 2U);
}

TEST_F(OwnJobs, TheListOfJobsHasTheirs) {
  Job list;
  EXPECT_EQ(ask(list).job_reply().jobs_size(), 2);
  const Envelope own = ask(list, kAlice);
  ASSERT_EQ(own.job_reply().jobs_size(), 1);
  EXPECT_EQ(own.job_reply().jobs(0).jobid(), "mine");
}

TEST_F(OwnJobs, ClientsOfOthersAreNotShown) {
  program_.clients = {client_of("10.0.0.1", "mine", 1001), client_of("10.0.0.2", "theirs", 1002)};
  program_.clients[0].add_seen()->set_jobid("theirs");
  const Envelope all = who("10.0.0.0/8");
  EXPECT_EQ(all.why_reply().clients_size(), 2);
  EXPECT_EQ(all.why_reply().jobs_size(), 2);
  const Envelope own = who("10.0.0.0/8", kAlice);
  ASSERT_EQ(own.why_reply().clients_size(), 1);
  ASSERT_EQ(own.why_reply().clients(0).seen_size(), 1);
  EXPECT_EQ(own.why_reply().clients(0).seen(0).jobid(), "mine");
  ASSERT_EQ(own.why_reply().jobs_size(), 1);
  EXPECT_EQ(own.why_reply().jobs(0).jobid(), "mine");
  ASSERT_EQ(own.why_reply().virtual_pfs_size(), 1);
  EXPECT_EQ(own.why_reply().virtual_pfs(0).name(), "job-mine");
  EXPECT_EQ(own.why_reply().rules_size(), 0);
  EXPECT_EQ(who("1002", kAlice).why_reply().clients_size(), 0);
}

TEST_F(OwnJobs, TheCallersOwnNameIsKnown) {
  program_.clients = {client_of("10.0.0.1", "mine", 1001)};
  EXPECT_EQ(who("alice", kAlice).why_reply().clients_size(), 1);
  EXPECT_EQ(who("ali", kAlice).why_reply().clients_size(), 0);
}

}  // namespace
}  // namespace vpfs::control
