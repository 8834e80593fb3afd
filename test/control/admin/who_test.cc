#include "control/admin/who.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamesOfTest final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return name == "alice" ? std::optional<std::uint32_t>(1001) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    if (host == "n1") return {"10.0.0.1", "fd00::1"};
    return {};
  }
};

Seen seen_of(const std::string& virtual_pfs, const std::string& jobid, std::uint32_t uid) {
  Seen seen;
  seen.set_virtual_pfs(virtual_pfs);
  seen.set_rule(virtual_pfs == "default" ? "" : "rule of " + virtual_pfs);
  seen.set_jobid(jobid);
  seen.set_uid(uid);
  return seen;
}

Client client_of(const std::string& address, const std::vector<Seen>& seen) {
  Client client;
  client.set_address(address);
  for (const Seen& each : seen) *client.add_seen() = each;
  return client;
}

class WhoTest : public ::testing::Test {
 protected:
  // "10.0.0.1: a b" for each client that is told, with the virtual PFSes.
  std::vector<std::string> ask(const std::string& whom) {
    reply_.Clear();
    add_clients(reply_, clients_, read_asked(whom, &names_));
    std::vector<std::string> told;
    for (const Client& client : reply_.clients()) {
      std::string& line = told.emplace_back(client.address() + ":");
      for (const Seen& each : client.seen()) line += " " + each.virtual_pfs();
    }
    return told;
  }

  const NamesOfTest names_;
  std::vector<Client> clients_ = {
      client_of("10.0.0.1", {seen_of("a", "4711", 1001), seen_of("default", "", 1002)}),
      client_of("10.0.0.2", {seen_of("b", "", 4711)}),
      client_of("fd00::1", {seen_of("c", "x", 7)})};
  WhyReply reply_;
};

TEST_F(WhoTest, AClientThatDoesNotListAllIsToldOfEvenIfNothingFits) {
  clients_.push_back(client_of("/mnt/shared", {seen_of("a", "1", 7)}));
  EXPECT_THAT(ask("bob"), IsEmpty());
  clients_.back().set_not_listed(5);
  EXPECT_THAT(ask("bob"), ElementsAre("/mnt/shared:"));
}

TEST_F(WhoTest, AnAddressGivesAllThatTheClientHasShown) {
  EXPECT_THAT(ask("10.0.0.1"), ElementsAre("10.0.0.1: a default"));
  EXPECT_THAT(ask("10.0.0.9"), IsEmpty());
}

TEST_F(WhoTest, ABlockGivesEveryClientInIt) {
  EXPECT_THAT(ask("10.0.0.0/24"), ElementsAre("10.0.0.1: a default", "10.0.0.2: b"));
  EXPECT_THAT(ask("10.0.0.[2-9]"), ElementsAre("10.0.0.2: b"));
  EXPECT_THAT(ask("fd00::/16"), ElementsAre("fd00::1: c"));
}

TEST_F(WhoTest, AHostNameMeansAllItsAddresses) {
  EXPECT_THAT(ask("n1"), ElementsAre("10.0.0.1: a default", "fd00::1: c"));
  EXPECT_THAT(ask("n9"), IsEmpty());
}

TEST_F(WhoTest, ANumberIsAJobAndAUid) {
  EXPECT_THAT(ask("4711"), ElementsAre("10.0.0.1: a", "10.0.0.2: b"));
}

TEST_F(WhoTest, AUserIsFoundByNameAndOwnersOfFilesToo) {
  EXPECT_THAT(ask("alice"), ElementsAre("10.0.0.1: a"));
  clients_[2].mutable_seen(0)->clear_uid();
  clients_[2].mutable_seen(0)->set_owner(1001);
  EXPECT_THAT(ask("alice"), ElementsAre("10.0.0.1: a", "fd00::1: c"));
}

TEST_F(WhoTest, NoNameMeansTheClientsInDefault) {
  EXPECT_THAT(ask(""), ElementsAre("10.0.0.1: default"));
}

TEST_F(WhoTest, TheContextIsThatOfTheClientsAndOfTheJobsThatFit) {
  ASSERT_THAT(ask("4711"), ElementsAre("10.0.0.1: a", "10.0.0.2: b"));
  StatsReply stats;
  for (const char* const name : {"default", "a", "b", "c"}) {
    stats.add_virtual_pfs()->set_name(name);
    stats.add_rules()->set_name(std::string("rule of ") + name);
  }
  JobReply jobs;
  jobs.add_jobs()->set_jobid("4711");
  jobs.add_jobs()->set_jobid("1");
  jobs.mutable_jobs(1)->add_uids(4711);
  jobs.add_jobs()->set_jobid("2");
  jobs.mutable_jobs(2)->add_clients("10.0.0.1");
  add_context(reply_, stats, jobs, read_asked("4711", &names_));
  ASSERT_EQ(reply_.virtual_pfs_size(), 2);
  EXPECT_EQ(reply_.virtual_pfs(0).name(), "a");
  EXPECT_EQ(reply_.virtual_pfs(1).name(), "b");
  ASSERT_EQ(reply_.rules_size(), 2);
  EXPECT_EQ(reply_.rules(1).name(), "rule of b");
  ASSERT_EQ(reply_.jobs_size(), 2);
  EXPECT_EQ(reply_.jobs(1).jobid(), "1");

  WhyReply by_address;
  add_context(by_address, stats, jobs, read_asked("n1", &names_));
  ASSERT_EQ(by_address.jobs_size(), 1);
  EXPECT_EQ(by_address.jobs(0).jobid(), "2");
}

TEST_F(WhoTest, GarbageFindsNoClient) {
  for (const char* const text : {"[", "n[", "999.1.1.1", "\x01", "4711x", "-1", "99999999999999"}) {
    EXPECT_THAT(ask(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace vpfs::control
