// The program vpfsctl, at a coordinator.
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

// A coordinator of two stages, the second of which is silent, and of which ds1 does all it is
// asked.
class VpfsctlCoordinator : public ::testing::Test {
 protected:
  VpfsctlCoordinator() : site_({Mood::obeys}) {
    site_.call_itself(0, control::Hello::COORDINATOR);
    site_.on_ask([](const control::Envelope& request) {
      control::Envelope reply;
      if (request.has_status()) {
        reply.mutable_status_reply()->set_json(
            R"({"name": "main", "stages": [{"name": "ds1", "connected": true},
                                           {"name": "ds2", "problem": "is down"}]})");
      } else if (request.has_forward()) {
        const control::Forward& forward = request.forward();
        const bool wants_all = forward.stages().empty();
        if (wants_all || forward.stages(0) == "ds1") {
          auto& answer = *reply.mutable_forward_reply()->add_answers();
          answer.set_stage("ds1");
          *answer.mutable_answer() = answer_of_stage(forward.request());
        }
        if (wants_all) {
          auto& answer = *reply.mutable_forward_reply()->add_answers();
          answer.set_stage("ds2");
          control::Error& error = *answer.mutable_answer()->mutable_error();
          error.set_code(control::Error::UNAVAILABLE);
          error.set_place("stage");
          error.set_text("is down");
        }
      } else {
        reply.mutable_ack()->set_text("the coordinator did it");
      }
      return reply;
    });
  }
  static control::Envelope answer_of_stage(const control::Envelope& request) {
    control::Envelope reply;
    if (request.has_stats()) {
      static std::uint64_t at_us = 0;
      control::StatsReply& stats = *reply.mutable_stats_reply();
      stats.set_name("ds1");
      stats.set_policy("sfq");
      stats.set_at_us(at_us += 1'000'000);
      stats.add_virtual_pfs()->set_name("gold");
    } else {
      reply.mutable_ack()->set_text("the stage did it");
    }
    return reply;
  }
  Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--coordinator", site_.socket(0)});
    return vpfsctl(std::move(arguments));
  }

  Proxies site_;
};

TEST_F(VpfsctlCoordinator, RulesAndJobsGoToTheCoordinatorItself) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"rule", "start", "x", "jobid=a", "total_rate=1GiB/s"},
                                             {"rule", "confirm"},
                                             {"job", "stop", "4711"}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "the coordinator did it\n");
  }
  EXPECT_EQ(site_.asked(0)[0].rule().words(0), "total_rate=1GiB/s");
}

TEST_F(VpfsctlCoordinator, OtherCommandsGoThroughItToItsStages) {
  const Outcome outcome = run({"bypass", "on"});
  EXPECT_EQ(outcome.code, 4) << "one stage was not reached";
  EXPECT_EQ(outcome.output, "ds1: the stage did it\n");
  EXPECT_EQ(outcome.errors, "vpfsctl: ds2: unreachable: is down\n");
  const auto asked = site_.asked(0);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_TRUE(asked[0].forward().request().bypass().on());
  EXPECT_THAT(asked[0].forward().stages(), IsEmpty());
}

TEST_F(VpfsctlCoordinator, OneStageCanBeNamed) {
  const Outcome outcome = run({"reload", "--stage", "ds1"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "the stage did it\n");
  EXPECT_THAT(site_.asked(0)[0].forward().stages(), ElementsAre("ds1"));
}

TEST_F(VpfsctlCoordinator, StatShowsAllStagesTogether) {
  const Outcome outcome = run({"stat"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("gold"));
  EXPECT_THAT(outcome.output, HasSubstr("? ds2: is down"));
  EXPECT_THAT(outcome.errors, HasSubstr("ds2: unreachable: is down"));
  EXPECT_THAT(site_.asked(0)[1].forward().stages(), ElementsAre("ds1"))
      << "whoever has not answered is not asked again";
}

TEST_F(VpfsctlCoordinator, TopDoesSoAgainAndAgain) {
  const Outcome outcome = run({"top", "-n", "2", "-d", "100ms"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("gold"));
  EXPECT_THAT(outcome.output, HasSubstr("? ds2: is down"));
  const Json json = Json::parse(run({"--json", "top", "-n", "1", "-d", "300ms"}).output);
  ASSERT_EQ(json["proxies"].size(), 2U);
  EXPECT_EQ(json["proxies"][0]["name"], "ds1");
}

TEST_F(VpfsctlCoordinator, StatusShowsTheCoordinatorFirst) {
  const Outcome outcome = run({"status"});
  EXPECT_EQ(outcome.code, 4) << "a stage is missing";
  EXPECT_THAT(outcome.output, HasSubstr("coordinator  main"));
  EXPECT_THAT(outcome.output, HasSubstr("1 connected, 1 ABSENT"));
  const Json json = Json::parse(run({"--json", "status"}).output);
  ASSERT_EQ(json["proxies"].size(), 3U);
  EXPECT_EQ(json["proxies"][0]["data"]["name"], "main");
  EXPECT_EQ(json["proxies"][1]["name"], "ds1");
  EXPECT_EQ(json["proxies"][2]["ok"], false);
  const Outcome stage = run({"status", "--stage", "ds1"});
  EXPECT_EQ(stage.code, 0) << stage.errors;
  EXPECT_THAT(stage.output, HasSubstr("proxy        ds1"));
}

TEST_F(VpfsctlCoordinator, TheEnvironmentNamesItUnlessProxiesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> environment = {
      {"VPFS_COORDINATOR", site_.socket(0)}, {"VPFS_PROXY", "/nowhere"}};
  EXPECT_EQ(vpfsctl({"rule", "confirm"}, environment).code, 0);
  EXPECT_EQ(vpfsctl({"rule", "confirm", "--proxy", "/nowhere"}, environment).code, 3);
}

TEST_F(VpfsctlCoordinator, WhatMakesNoSenseIsRefusedBeforeAnyProxyIsAsked) {
  EXPECT_THAT(run({"rule", "start", "x", "jobid=a", "--atomic"}).errors, HasSubstr("--atomic"));
  EXPECT_EQ(run({"rule", "start", "x", "jobid=a", "--atomic"}).code, 2);
  EXPECT_EQ(run({"status", "--all"}).code, 2);
  EXPECT_EQ(run({"rule", "stop", "x", "--stage", "ds1"}).code, 2);
  EXPECT_EQ(vpfsctl({"status", "--stage", "ds1"}).code, 2);
  EXPECT_THAT(site_.asked(0), IsEmpty());
}

TEST_F(VpfsctlCoordinator, ACoordinatorThatIsAwayIsToldAsAProxyIs) {
  site_.stop(0);
  for (const char* command : {"status", "stat", "who", "reload"}) {
    EXPECT_EQ(run({command}).code, 3) << command;
  }
}

// Several processes of a coordinator: c0, c1, ...
class VpfsctlStandbys : public ::testing::Test {
 protected:
  struct Coordinator {
    std::string socket;
    FakeOwner owner;
    std::unique_ptr<control::Port> port;
  };

  // The one of that number leads.
  explicit VpfsctlStandbys(std::size_t leader = 1) : leader_(leader) {
    for (std::size_t i = 0; i < 3; ++i) {
      Coordinator& made = coordinators_.emplace_back();
      made.socket = directory_.path() / ("c" + std::to_string(i));
      made.owner.call_itself(control::Hello::COORDINATOR);
      made.owner.be_standby(i != leader);
      made.owner.on_ask([this, i](const control::Envelope& request, const control::Caller&,
                                  const control::Answer& answer) {
        if (i == leader_) return answer(reply_to(request));
        control::Error error;
        error.set_code(control::Error::UNAVAILABLE);
        error.set_place("leader");
        error.set_text("this coordinator is a standby: " + who_leads());
        answer(std::move(error));
      });
      control::PortConfig config;
      config.socket = made.socket;
      auto port = control::Port::open(config, made.owner, clock_);
      EXPECT_TRUE(port);
      made.port = std::move(*port);
      made.port->start();
    }
  }
  void lead(std::size_t leader) {
    leader_ = leader;
    for (std::size_t i = 0; i < coordinators_.size(); ++i) {
      coordinators_[i].owner.be_standby(i != leader);
    }
  }
  [[nodiscard]] std::string who_leads() const {
    return leader_ < coordinators_.size() ? coordinators_[leader_].socket + " leads"
                                          : "at present none leads";
  }
  static control::Envelope reply_to(const control::Envelope& request) {
    control::Envelope reply;
    if (request.has_status()) {
      reply.mutable_status_reply()->set_json(
          R"({"name": "main", "stages": [{"name": "ds1", "connected": true}]})");
    } else if (request.has_forward()) {
      auto& answer = *reply.mutable_forward_reply()->add_answers();
      answer.set_stage("ds1");
      answer.mutable_answer()->mutable_ack()->set_text("the stage did it");
      if (request.forward().request().has_stats()) {
        static std::atomic<std::uint64_t> at_us = 0;
        control::StatsReply& stats = *answer.mutable_answer()->mutable_stats_reply();
        stats.set_policy("sfq");
        stats.set_at_us(at_us += 1'000'000);
        stats.add_virtual_pfs()->set_name("gold");
      }
    } else {
      reply.mutable_ack()->set_text("the coordinator did it");
    }
    return reply;
  }
  [[nodiscard]] std::string all() const {
    return coordinators_[0].socket + "," + coordinators_[1].socket + "," + coordinators_[2].socket;
  }
  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--coordinator", all()});
    return vpfsctl(std::move(arguments));
  }

  const TemporaryDirectory directory_;
  const SystemClock clock_;
  std::atomic<std::size_t> leader_;
  std::deque<Coordinator> coordinators_;
};

TEST_F(VpfsctlStandbys, EachCommandGoesToTheOneThatLeads) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"rule", "start", "x", "jobid=a", "total_rate=1GiB/s"},
                                             {"job", "stop", "4711"},
                                             {"rule", "list"},
                                             {"reload"},
                                             {"config", "--stage", "ds1"},
                                             {"who"},
                                             {"status"},
                                             {"stat"},
                                             {"top", "-n", "1", "-d", "100ms"}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << command[0] << ": " << outcome.output << outcome.errors;
  }
  EXPECT_THAT(run({"status"}).output, HasSubstr("coordinator  main"));
  EXPECT_THAT(run({"stat"}).output, HasSubstr("gold"));
  for (const std::size_t standby : {0U, 2U}) {
    for (const FakeOwner::Asked& each : coordinators_[standby].owner.asked()) {
      EXPECT_TRUE(each.request.has_stats()) << "it is only asked for the leader";
    }
  }
}

TEST_F(VpfsctlStandbys, AnyFormOfAListWillDo) {
  const std::vector<std::string> command = {"rule", "confirm", "--coordinator"};
  std::vector<std::string> repeated = command;
  repeated.insert(repeated.end(), {coordinators_[0].socket, "--coordinator",
                                   coordinators_[1].socket + ",unix:" + coordinators_[0].socket});
  EXPECT_EQ(vpfsctl(repeated).code, 0);
  EXPECT_EQ(vpfsctl({"rule", "confirm"}, {{"VPFS_COORDINATOR", all()}}).code, 0);
  for (const char* wrong : {"/a,,/b", "/a,", "/a,what"}) {
    const Outcome outcome = vpfsctl({"rule", "confirm", "--coordinator", wrong});
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_THAT(outcome.errors, HasSubstr("--coordinator: \"")) << wrong;
  }
}

TEST_F(VpfsctlStandbys, IfNoneLeadsEachOfThemIsNamed) {
  lead(99);
  coordinators_[1].port.reset();
  for (const char* command : {"status", "stat", "who", "reload"}) {
    const Outcome outcome = run({command});
    EXPECT_EQ(outcome.code, 3) << command;
    EXPECT_THAT(outcome.errors,
                HasSubstr("unreachable: none of them leads: " + coordinators_[0].socket +
                          ": this coordinator is a standby: at present none leads; " +
                          coordinators_[1].socket + ": there is no such socket: "))
        << command;
  }
  const Json json = Json::parse(run({"--json", "rule", "confirm"}).output);
  EXPECT_EQ(json["proxies"][0]["error"]["code"], "unreachable");
  EXPECT_EQ(run({"job", "stop", "1", "--best-effort"}).code, 0);
}

TEST_F(VpfsctlStandbys, AStandbyAloneSaysWhereTheLeaderIs) {
  const Outcome outcome = vpfsctl({"rule", "confirm", "--coordinator", coordinators_[2].socket});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.errors, "vpfsctl: " + coordinators_[2].socket +
                                ": unreachable: this coordinator is a standby: " +
                                coordinators_[1].socket + " leads\n");
}

TEST_F(VpfsctlStandbys, TopFollowsTheLeader) {
  std::thread moving([this] {
    while (coordinators_[1].owner.asked().empty()) std::this_thread::sleep_for(5ms);
    lead(2);
  });
  const Outcome outcome = run({"top", "-n", "3", "-d", "200ms"});
  moving.join();
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  bool is_forwarded = false;
  for (const FakeOwner::Asked& each : coordinators_[2].owner.asked()) {
    is_forwarded |= each.request.has_forward();
  }
  EXPECT_TRUE(is_forwarded);
}

}  // namespace
}  // namespace vpfs::test
