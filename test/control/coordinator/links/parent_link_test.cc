// An aggregator that looks for the leader among its parent's processes.
#include "control/coordinator/links/parent_link.h"

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/wire/protocol.h"
#include "net/ready_set.h"
#include "test/support/comes_true.h"
#include "test/support/control/fake_coordinator.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::FakeCoordinator;
using test::RawPeer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ParentLinkTest : public ::testing::Test, private ParentLink::ParentHandler {
 protected:
  ParentLinkTest() {
    // The others are tried at once, not after a pause.
    limits_.least_pause = limits_.most_pause = 1min;
    limits_.connect_each = 300ms;
    auto policy = std::make_unique<allocation::GivenPolicy>(allocation::Amounts{});
    allocation::GivenPolicy& given = *policy;
    state_.emplace(allocation::CycleSettings{.lease = 1s, .transit = 100ms, .silent_cycles = 50},
                   std::move(policy), 1);
    uplink_.emplace(*state_, given);
    runner_.emplace(context_, clock_, *state_);
  }
  ~ParentLinkTest() override {
    if (!thread_.joinable()) return;
    on_thread([this] { link_->stop(); });
    context_.stop();
    thread_.join();
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() / name; }
  void open(const std::vector<std::string>& names) {
    config_.parent.emplace();
    for (const std::string& name : names) {
      config_.parent->addresses.push_back({.path = path(name), .host = ""});
    }
    ParentLink::ParentHandler& self = *this;
    auto link =
        ParentLink::make(context_, clock_, config_, room_, *uplink_, *runner_, self, limits_);
    ASSERT_TRUE(link) << link.error().message;
    link_ = std::move(*link);
    thread_ = std::thread([this] {
      link_->start();
      const auto guard = asio::make_work_guard(context_);
      context_.run();
    });
  }
  template <typename Work>
  auto on_thread(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    asio::post(context_, [&task] { task(); });
    return result.get();
  }
  [[nodiscard]] ParentLink::Status status() {
    return on_thread([this] { return link_->status(); });
  }
  [[nodiscard]] bool is_connected_to(const std::string& name) {
    return comes_true([&] {
      const ParentLink::Status now = status();
      return now.is_connected && now.address == path(name);
    });
  }
  [[nodiscard]] bool shows_problem(const std::string& text) {
    return comes_true([&] { return status().problem.find(text) != std::string::npos; });
  }

 private:
  [[nodiscard]] std::optional<control::Hello> hello() const override {
    control::Hello hello;
    hello.set_version(1);
    hello.set_least(1);
    hello.set_role(control::Hello::STAGE);
    hello.set_name("agg");
    return hello;
  }
  void led(bool /*is_led*/) override {}
  void ask(const control::Envelope& /*request*/, ParentLink::Done done) override {
    control::Envelope answer;
    answer.mutable_ack();
    done(std::move(answer));
  }

 protected:
  test::TemporaryDirectory folder_;
  SystemClock clock_;
  Config config_;
  ParentLimits limits_;
  asio::io_context context_{1};
  std::unique_ptr<net::ReadySet> set_ = std::move(net::ReadySet::make(context_)).value();
  LinkRoom room_{*set_};
  std::optional<allocation::CycleState> state_;
  std::optional<allocation::Uplink> uplink_;
  std::optional<CycleRunner> runner_;
  std::unique_ptr<ParentLink> link_;
  std::thread thread_;
};

TEST_F(ParentLinkTest, TheOneThatLeadsIsFoundAtOnce) {
  FakeCoordinator standby(path("b"));
  FakeCoordinator leader(path("c"));
  open({"a", "b", "c"});
  EXPECT_TRUE(standby.refuses_as_standby());
  const auto stage = leader.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(is_connected_to("c"));
  EXPECT_THAT(status().addresses, ElementsAre(path("a"), path("b"), path("c")));
  EXPECT_EQ(status().problem, "");
}

TEST_F(ParentLinkTest, OnesThatDoNotAnswerHoldTheOthersUpForAShortTimeOnly) {
  FakeCoordinator silent(path("a"));
  FakeCoordinator full(path("b"));
  std::vector<RawPeer> queue;
  for (int i = 0; i < 17; ++i) queue.emplace_back(path("b"));
  FakeCoordinator leader(path("c"));
  const auto began = std::chrono::steady_clock::now();
  open({"a", "b", "c"});
  const auto stage = leader.greeted();
  ASSERT_TRUE(stage);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
  EXPECT_TRUE(is_connected_to("c"));
  std::this_thread::sleep_for(400ms);
  EXPECT_TRUE(status().is_connected) << "the time for Hello is over, and it was said";
}

TEST_F(ParentLinkTest, WhenTheLeaderEndsTheOthersAreTriedFirst) {
  limits_.most_pause = 20ms;
  FakeCoordinator first(path("a"));
  FakeCoordinator second(path("b"));
  FakeCoordinator third(path("c"));
  open({"a", "b", "c"});
  auto stage = first.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(is_connected_to("a"));
  std::this_thread::sleep_for(60ms);
  const auto began = std::chrono::steady_clock::now();
  stage.reset();
  EXPECT_TRUE(second.refuses_as_standby());
  stage = third.greeted();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_TRUE(is_connected_to("c"));
}

TEST_F(ParentLinkTest, WhileNoneLeadsThereIsOneProblemOfAll) {
  limits_.least_pause = limits_.most_pause = 20ms;
  FakeCoordinator standby(path("b"));
  open({"a", "b"});
  EXPECT_TRUE(standby.refuses_as_standby());
  EXPECT_TRUE(shows_problem("no coordinator of " + path("a") + ", " + path("b") +
                            " can be reached: " + path("a") + ": there is no such socket"));
  EXPECT_THAT(status().problem, HasSubstr(path("b") + ": it is a standby, and does not lead"));
  EXPECT_TRUE(standby.refuses_as_standby());
  const auto stage = standby.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(is_connected_to("b")) << "it leads by now";
}

TEST_F(ParentLinkTest, TheOnlyOneIsDialledAgainAfterAPause) {
  limits_.least_pause = limits_.most_pause = 20ms;
  open({"a"});
  EXPECT_TRUE(shows_problem("there is no such socket"));
  EXPECT_THAT(status().problem, ::testing::Not(HasSubstr("no coordinator of")));
  FakeCoordinator only(path("a"));
  EXPECT_TRUE(only.refuses_as_standby());
  EXPECT_TRUE(shows_problem("it is a standby"));
  const auto stage = only.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(is_connected_to("a"));
}

TEST_F(ParentLinkTest, AParentThatIsToldLaterIsDialledThen) {
  open({});
  EXPECT_TRUE(status().addresses.empty());
  FakeCoordinator first(path("a"));
  on_thread([this] { link_->follow({{.path = path("a"), .host = ""}}); });
  const auto stage = first.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(is_connected_to("a"));
  // The same again changes nothing; another one is dialled at once.
  on_thread([this] { link_->follow({{.path = path("a"), .host = ""}}); });
  EXPECT_TRUE(status().is_connected);
  FakeCoordinator second(path("b"));
  on_thread([this] { link_->follow({{.path = path("b"), .host = ""}}); });
  const auto another = second.greeted();
  ASSERT_TRUE(another);
  EXPECT_TRUE(is_connected_to("b"));
}

}  // namespace
}  // namespace vpfs::coordinator
