// A real vpfs-proxy that connects to its coordinator, takes on its site, and loses it again.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "test/support/control/fake_coordinator.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DialledCoordinatorTest : public ::testing::Test {
 protected:
  DialledCoordinatorTest()
      : proxy_(
            {.upstream = server_.port(),
             .control = fmt::format("socket: {0}/px.sock, journal: {0}/journal, name: s0, "
                                    "coordinator: {0}/stages.sock",
                                    folder_.path().string()),
             .virtual_pfs = "'job-{jobid}': {weight: 1}",
             .rules = "[{name: jobs, match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]"}) {}

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() / name; }
  // The coordinator starts, and the proxy finds it.
  void coordinate() {
    coordinator_.emplace(path("stages.sock"));
    stage_ = coordinator_->greeted();
    ASSERT_TRUE(stage_);
  }
  control::Envelope ask(control::Envelope request) {
    request.set_id(++number_);
    EXPECT_TRUE(stage_->send(request));
    const auto answer = stage_->receive();
    EXPECT_TRUE(answer && answer->id() == number_);
    return answer.value_or(control::Envelope());
  }
  control::Envelope tell(const std::vector<std::string>& rules) {
    control::Envelope request;
    control::Site& site = *request.mutable_site();
    site.set_origin("north");
    for (const std::string& name : rules) {
      control::Site::Rule& rule = *site.add_rules();
      rule.set_name(name);
      rule.set_condition("jobid=" + name);
      rule.add_words("weight=3");
    }
    control::JobState& job = *site.add_jobs();
    job.set_jobid("gold");
    job.add_clients("127.0.0.1");
    job.add_uids(1001);
    return ask(request);
  }
  [[nodiscard]] Outcome ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--proxy", path("px.sock")});
    return vpfsctl(std::move(arguments));
  }
  // "gold of coordinator", in the order in which they are tried.
  [[nodiscard]] std::vector<std::string> rules() const {
    const Outcome outcome = ctl({"--json", "rule", "list"});
    const json all = json::parse(outcome.output, nullptr, false);
    std::vector<std::string> found;
    if (all.is_discarded()) return found;
    for (const json& rule : all["proxies"][0]["data"]["rules"]) {
      found.push_back(fmt::format("{} of {}", rule["name"].get<std::string>(),
                                  rule["origin"].get<std::string>()));
    }
    return found;
  }

  TemporaryDirectory folder_;
  FakeDataServer server_;
  ProxyProcess proxy_;
  std::optional<FakeCoordinator> coordinator_;
  std::optional<RawPeer> stage_;
  std::uint64_t number_ = 0;
};

TEST_F(DialledCoordinatorTest, ItsSiteIsInForceAndOutlivesBoth) {
  ASSERT_NO_FATAL_FAILURE(coordinate());
  EXPECT_EQ(tell({"gold", "lead"}).ack().text(), "2 rules and 1 jobs of north");
  EXPECT_EQ(tell({"gold", "lead"}).ack().text(), "") << "it is the same";
  const std::vector<std::string> expected = {"gold of coordinator", "lead of coordinator",
                                             "jobs of file", "default of file"};
  EXPECT_EQ(rules(), expected);
  EXPECT_THAT(ctl({"rule", "stop", "gold"}).errors, HasSubstr("'gold' is the coordinator's"));
  EXPECT_THAT(ctl({"job", "list"}).output, HasSubstr("coordinator"));

  // The proxy is killed, then the coordinator goes.
  stage_.reset();
  coordinator_.reset();
  proxy_.kill();
  proxy_.start();
  EXPECT_EQ(rules(), expected);
  EXPECT_THAT(ctl({"status"}).output, HasSubstr("NOT CONNECTED"));
  ASSERT_NO_FATAL_FAILURE(coordinate());
  EXPECT_EQ(tell({"gold", "lead"}).ack().text(), "");
  EXPECT_NE(tell({"lead"}).ack().text(), "");
  EXPECT_THAT(rules(), ElementsAre("lead of coordinator", "jobs of file", "default of file"));
  EXPECT_THAT(ctl({"status"}).output, HasSubstr("site at " + path("stages.sock")));
}

TEST_F(DialledCoordinatorTest, AnswersForAUserHaveOwnJobsAlone) {
  ASSERT_NO_FATAL_FAILURE(coordinate());
  (void)tell({});
  ProxiedLink link = open_link(proxy_, server_);
  for (const char* const job : {"gold", "other"}) {
    ASSERT_TRUE(link.client.send(io_request(1, {.size = 4096, .job = job})));
    ASSERT_TRUE(link.server.receive());
    ASSERT_TRUE(link.server.send(io_response(1, 0)));
    ASSERT_TRUE(link.client.receive());
  }
  control::Envelope request;
  request.mutable_stats();
  const auto names = [](const control::Envelope& reply) {
    std::vector<std::string> all;
    for (const auto& each : reply.stats_reply().virtual_pfs()) all.push_back(each.name());
    return all;
  };
  EXPECT_THAT(names(ask(request)), ElementsAre("default", "job-gold", "job-other"));
  request.set_as_uid(1001);
  const control::Envelope own = ask(request);
  EXPECT_THAT(names(own), ElementsAre("job-gold"));
  EXPECT_TRUE(own.stats_reply().partial());
  request.set_as_uid(1002);
  EXPECT_THAT(names(ask(request)), ElementsAre());
  request.mutable_reload();
  EXPECT_EQ(ask(request).error().code(), control::Error::NOT_PERMITTED);
}

}  // namespace
}  // namespace vpfs::test
