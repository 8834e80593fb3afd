// A program that asks the one of several coordinators that leads.
#include "control/wire/leader/leader_session.h"

#include <atomic>
#include <deque>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/wire/client.h"
#include "control/wire/port.h"
#include "test/support/control/fake_coordinator.h"
#include "test/support/control/fake_owner.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::FakeOwner;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr Duration kPatience = 10s;

class LeaderSessionTest : public ::testing::Test {
 protected:
  // A coordinator that is a standby until it leads.
  struct Coordinator {
    FakeOwner owner;
    std::unique_ptr<Port> port;
    std::string who_leads;
    std::atomic<bool> is_standby = true;
    std::atomic<int> asked = 0;  // what a leader did
  };

  [[nodiscard]] PortAddress address(const std::string& name) const {
    return {.path = folder_.path() / name, .host = ""};
  }
  Coordinator& open(const std::string& name, bool leads = false,
                    const std::string& who_leads = "at present none leads") {
    Coordinator& made = coordinators_.emplace_back();
    made.who_leads = who_leads;
    made.owner.call_itself(Hello::COORDINATOR);
    made.owner.on_ask([&made](const Envelope& request, const Caller&, const Answer& answer) {
      if (made.is_standby && !request.has_status()) {
        return answer(make_error(Error::UNAVAILABLE, "leader",
                                 "this coordinator is a standby: " + made.who_leads));
      }
      if (!request.has_stats()) ++made.asked;  // with that it is asked where the leader is
      answer(Ack());
    });
    set(made, leads);
    start(made, name);
    return made;
  }
  void start(Coordinator& coordinator, const std::string& name) {
    PortConfig config;
    config.socket = address(name).path;
    auto port = Port::open(config, coordinator.owner, clock_);
    ASSERT_TRUE(port) << port.error().message;
    coordinator.port = std::move(*port);
    coordinator.port->start();
  }
  static void set(Coordinator& coordinator, bool leads) {
    coordinator.is_standby = !leads;
    coordinator.owner.be_standby(!leads);
  }
  [[nodiscard]] LeaderClient client(const std::vector<std::string>& names) const {
    std::vector<PortAddress> addresses;
    for (const std::string& name : names) addresses.push_back(address(name));
    return {addresses, options_};
  }
  static Envelope read() {
    Envelope request;
    request.mutable_why();
    return request;
  }
  static Envelope change() {
    Envelope request;
    request.mutable_reload();
    return request;
  }

  test::TemporaryDirectory folder_;
  SystemClock clock_;
  ClientOptions options_;
  std::deque<Coordinator> coordinators_;
};

TEST_F(LeaderSessionTest, TheOneThatLeadsIsAsked) {
  open("a");
  Coordinator& leader = open("b", true);
  open("c");
  LeaderClient asker = client({"a", "b", "c"});
  EXPECT_EQ(asker.hello(), nullptr);
  EXPECT_TRUE(asker.ask(change(), kPatience));
  EXPECT_TRUE(asker.ask(read(), kPatience));
  EXPECT_EQ(leader.asked, 2);
  ASSERT_NE(asker.hello(), nullptr);
  EXPECT_EQ(asker.hello()->role(), Hello::COORDINATOR);
}

TEST_F(LeaderSessionTest, OnesThatAreAwayOrDoNotAnswerCostNothingBesideALeader) {
  options_.connect_each_within = 30s;
  const test::FakeCoordinator silent(address("silent").path);
  test::FakeCoordinator full(address("full").path);
  std::vector<test::RawPeer> queue;
  for (int i = 0; i < 17; ++i) queue.emplace_back(address("full").path);
  open("leader", true);
  const auto began = std::chrono::steady_clock::now();
  LeaderClient asker = client({"away", "silent", "full", "leader"});
  EXPECT_TRUE(asker.ask(change(), kPatience));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST_F(LeaderSessionTest, WithoutALeaderEachSaysWhatItIs) {
  options_.connect_each_within = 200ms;
  open("a", false, "/run/x leads");
  const test::FakeCoordinator silent(address("silent").path);
  FakeOwner stage;
  PortConfig config;
  config.socket = address("stage").path;
  auto port = Port::open(config, stage, clock_);
  ASSERT_TRUE(port);
  (*port)->start();
  const auto began = std::chrono::steady_clock::now();
  const auto answer = client({"a", "silent", "away", "stage"}).ask(read(), kPatience);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s) << "they are asked side by side";
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().reached);
  const std::string text = answer.error().error.text();
  EXPECT_THAT(text, HasSubstr("none of them leads: " + address("a").path +
                              ": this coordinator is a standby: /run/x leads; "));
  EXPECT_THAT(text, HasSubstr(address("silent").path + ": no answer within 200 ms; "));
  EXPECT_THAT(text, HasSubstr(address("away").path + ": there is no such socket"));
  EXPECT_THAT(text, EndsWith("stage: is not a coordinator: it calls itself \"fake\""));
}

TEST_F(LeaderSessionTest, OneAddressThatIsAStandbySaysSoAndWhereTheLeaderIs) {
  Coordinator& only = open("a", false, "/run/b leads");
  LeaderClient asker = client({"a"});
  const auto answer = asker.ask(change(), kPatience);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().reached);
  EXPECT_EQ(answer.error().error.text(), "this coordinator is a standby: /run/b leads");
  set(only, true);
  EXPECT_TRUE(asker.ask(change(), kPatience)) << "it leads by now";
}

TEST_F(LeaderSessionTest, ALeaderThatDoesNotLeadAnyMoreIsLookedForAgainOnce) {
  Coordinator& first = open("a", true);
  Coordinator& second = open("b");
  LeaderClient asker = client({"a", "b"});
  ASSERT_TRUE(asker.ask(change(), kPatience));
  set(first, false);
  set(second, true);
  EXPECT_TRUE(asker.ask(change(), kPatience)) << "nothing was done at the first";
  EXPECT_EQ(first.asked, 1);
  EXPECT_EQ(second.asked, 1);
  set(second, false);
  const auto answer = asker.ask(read(), kPatience);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().reached);
  EXPECT_THAT(answer.error().error.text(), HasSubstr("none of them leads: "));
}

// It says in its Hello that it leads, and refuses.
TEST_F(LeaderSessionTest, OneThatRefusesAgainAndAgainEndsTheSearch) {
  Coordinator& torn = open("a", true);
  torn.is_standby = true;
  const auto answer = client({"a", "b"}).ask(change(), kPatience);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().reached) << "it is as if none was there";
  EXPECT_TRUE(is_for_leader(answer.error().error));
  EXPECT_EQ(torn.owner.asked().size(), 2U);
}

TEST_F(LeaderSessionTest, WhenTheLeaderEndsReadsGoToTheNextOneAndChangesDoNot) {
  for (const bool is_change : {false, true}) {
    const std::string one = is_change ? "a" : "c";
    const std::string two = is_change ? "b" : "d";
    Coordinator& first = open(one, true);
    Coordinator& second = open(two);
    LeaderClient asker = client({one, two});
    ASSERT_TRUE(asker.ask(read(), kPatience));
    // It ends while it is asked.
    first.owner.hold();
    std::thread ending([&] {
      while (first.owner.asked().size() < 2) std::this_thread::sleep_for(5ms);
      set(second, true);
      first.port.reset();
    });
    const auto answer = asker.ask(is_change ? change() : read(), kPatience);
    ending.join();
    EXPECT_EQ(answer.has_value(), !is_change);
    EXPECT_EQ(second.asked, is_change ? 0 : 1);
    EXPECT_TRUE(asker.ask(change(), kPatience)) << "the next request finds it";
  }
}

TEST_F(LeaderSessionTest, ARefusalOfTheLeaderIsItsAnswer) {
  Coordinator& leader = open("a", true);
  leader.port.reset();
  leader.owner.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    answer(make_error(Error::UNAVAILABLE, "journal", "the disk is full"));
  });
  start(leader, "a");
  const auto answer = client({"b", "a"}).ask(change(), kPatience);
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().reached);
  EXPECT_EQ(answer.error().error.place(), "journal");
  EXPECT_EQ(leader.owner.asked().size(), 1U);
}

}  // namespace
}  // namespace vpfs::control
