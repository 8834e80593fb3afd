// What a coordinator lists while it is not known whether it still leads.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/wire/client.h"
#include "test/support/control/scripted_store.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Envelope;
using control::Job;
using control::Rule;
using control::SiteStore;
using ::testing::IsEmpty;

Envelope rule(Rule::Action action) {
  Envelope envelope;
  envelope.mutable_rule()->set_action(action);
  return envelope;
}

Envelope jobs() {
  Envelope envelope;
  envelope.mutable_job()->set_action(Job::LIST);
  return envelope;
}

// Whether it comes with the warning. There may be others, of stages that do not answer.
bool may_be_old(const Envelope& reply) {
  const auto& warnings =
      reply.has_job_reply() ? reply.job_reply().warnings() : reply.rule_reply().warnings();
  return std::ranges::any_of(warnings, [](const std::string& each) {
    return each.find("recent changes may be missing") != std::string::npos;
  });
}

SiteStore::Outcome<void> failure(SiteStore::Why why) {
  return std::unexpected(SiteStore::Failure{why, "why"});
}

class ListsTest : public ::testing::Test {
 protected:
  using Outcome = std::optional<SiteStore::Outcome<void>>;  // nothing: it does not answer

  ListsTest() {
    ConfigErrors errors("c.yaml");
    const std::string place = folder_.path().string();
    config_ = parse_config("{name: main, policy: total, journal: " + place +
                               "/journal, stages: {dial: [{address: " + place +
                               "/a.sock}]}, control: {socket: " + place + "/c.sock}}",
                           errors);
    EXPECT_THAT(errors.lines(), IsEmpty());
    auto made = Coordinator::make({.context = context_,
                                   .clock = clock_,
                                   .config = config_,
                                   .options = options_,
                                   .term = 1,
                                   .incarnation = 7,
                                   .clear_from = clock_.now(),
                                   .records = records_,
                                   .store = caller_,
                                   .over = [](const std::string&) {},
                                   .store_problem = [] { return std::string(); },
                                   .confirm =
                                       [this](const SiteReads::Told& told) {
                                         ++asked_;
                                         const Outcome outcome = next_outcome();
                                         if (outcome) told(*outcome);
                                       }});
    EXPECT_TRUE(made) << made.error().message;
    coordinator_ = std::move(*made);
    coordinator_->start();
    thread_ = std::thread([this] {
      const auto guard = asio::make_work_guard(context_);
      context_.run();
    });
  }
  ~ListsTest() override {
    asio::post(context_, [this] {
      caller_.end();
      coordinator_->stop();
      context_.stop();
    });
    thread_.join();
  }

  // What the store says of the office, one after the other; the last one stays.
  void store_says(std::deque<Outcome> outcomes) {
    asio::post(context_, [this, outcomes = std::move(outcomes)] { outcomes_ = outcomes; });
  }
  Outcome next_outcome() {
    Outcome next = outcomes_.front();
    if (outcomes_.size() > 1) outcomes_.pop_front();
    return next;
  }
  [[nodiscard]] control::Reply<Envelope> ask(const Envelope& request) {
    auto client = control::PortClient::connect({.path = folder_.path() / "c.sock", .host = ""}, {});
    EXPECT_TRUE(client);
    return client->ask(request, 10s);
  }

  test::TemporaryDirectory folder_;
  test::ScriptedStore::State state_;
  control::StoreThread store_{std::make_unique<test::ScriptedStore>(state_)};
  SystemClock clock_;
  Config config_;
  const Coordinator::Options options_;
  const control::StateStore::Loaded records_;
  asio::io_context context_{1};
  control::StoreCaller caller_{
      store_, [this](std::function<void()> what) { asio::post(context_, std::move(what)); }};
  std::deque<Outcome> outcomes_ = {SiteStore::Outcome<void>()};
  std::atomic<int> asked_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
  std::thread thread_;
};

TEST_F(ListsTest, TheOfficeIsConfirmedBeforeEachList) {
  int lists = 0;
  for (const Envelope& request : {rule(Rule::LIST), rule(Rule::HISTORY), jobs()}) {
    const auto reply = ask(request);
    ASSERT_TRUE(reply) << reply.error().error.text();
    EXPECT_FALSE(may_be_old(*reply));
    EXPECT_EQ(asked_, ++lists);
  }
}

TEST_F(ListsTest, OneThatNoLongerLeadsListsNothing) {
  store_says({failure(SiteStore::Why::lost)});
  for (const Envelope& request : {rule(Rule::LIST), rule(Rule::HISTORY), jobs()}) {
    const auto reply = ask(request);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().error.code(), control::Error::UNAVAILABLE);
    EXPECT_EQ(reply.error().error.place(), "leader");  // vpfsctl asks the others then
  }
}

TEST_F(ListsTest, WhereTheStoreIsSilentListsSayThatTheyMayBeOld) {
  store_says({std::nullopt});
  for (const Envelope& request : {rule(Rule::LIST), rule(Rule::HISTORY), jobs()}) {
    const auto reply = ask(request);
    ASSERT_TRUE(reply) << reply.error().error.text();
    EXPECT_TRUE(may_be_old(*reply));
  }
}

TEST_F(ListsTest, AStoreThatFailsOnceCostsNoWarning) {
  store_says({failure(SiteStore::Why::unreachable), SiteStore::Outcome<void>()});
  const auto reply = ask(rule(Rule::LIST));
  ASSERT_TRUE(reply) << reply.error().error.text();
  EXPECT_FALSE(may_be_old(*reply));
  EXPECT_EQ(asked_, 2);
}

}  // namespace
}  // namespace vpfs::coordinator
