#include "control/admin/name_lookups.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/some_names.h"
#include "test/support/manual_clock.h"

namespace vpfs::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(HostNames, KnowRootAndThisHost) {
  const HostNames names;
  EXPECT_EQ(names.user("root"), 0U);
  EXPECT_EQ(names.group("root"), 0U);
  EXPECT_THAT(names.addresses("localhost"), Contains("127.0.0.1"));
  EXPECT_EQ(names.user("no such user"), std::nullopt);
}

TEST(HostNames, CopiesShareWhatTheyKeep) {
  const HostNames names;
  const HostNames copy = names;
  WantedNames wanted;
  wanted.users = {"root", "no such user"};
  EXPECT_EQ(copy.missing(wanted).size(), 2U);
  names.find_user("root");
  names.find_user("no such user");
  EXPECT_THAT(copy.missing(wanted).users, ElementsAre("no such user")) << "it may be added later";
  wanted.groups = {"root"};
  const WantedNames others = copy.not_kept(wanted);
  EXPECT_TRUE(others.users.empty()) << "that one is not there is kept";
  EXPECT_THAT(others.groups, ElementsAre("root"));
}

TEST(HostNames, HaveABound) {
  HostNames names;
  names.find_user("root");
  names.find_group("root");
  names.bound(2);
  WantedNames wanted;
  wanted.users = {"root"};
  EXPECT_TRUE(names.missing(wanted).empty());
  names.bound(1);
  EXPECT_EQ(names.missing(wanted).size(), 1U);
}

TEST(NotedNames, AreThoseThatAreNotKnownYetAndEachGetsAnAnswer) {
  const stage::SomeNames databases;
  const HostNames names(databases);
  names.find_user("alice");
  names.find_user("bob");
  const int lookups = databases.lookups();
  const NotedNames noted(names);
  EXPECT_EQ(names.user("alice"), 1001U);
  EXPECT_TRUE(names.user("bob")) << "this user may be added later";
  EXPECT_TRUE(names.group("physics"));
  EXPECT_FALSE(names.addresses("n1").empty());
  EXPECT_EQ(databases.lookups(), lookups);
  EXPECT_THAT(noted.wanted().users, ElementsAre("bob"));
  EXPECT_EQ(noted.wanted().size(), 3U);
  EXPECT_EQ(noted.answers().names().size(), 4U);
}

TEST(NotedNames, HoldIfTheirNamesMeanTheSameOnceTheyAreLookedUp) {
  const stage::SomeNames databases;
  const HostNames names(databases);
  names.find_user("alice");
  NotedNames::Answers known;
  NotedNames::Answers made_up;
  {
    const NotedNames noted(names);
    EXPECT_EQ(names.user("alice"), 1001U);
    known = noted.answers();
    EXPECT_TRUE(names.user("bob"));
    made_up = noted.answers();
  }
  EXPECT_TRUE(known.hold(names));
  EXPECT_FALSE(made_up.hold(names)) << "there is no bob";
}

// A name service that answers so many questions about hosts, and then none until its end.
class HangingDatabases final : public stage::Names {
 public:
  explicit HangingDatabases(int answered = 0) : answered_(answered) {}
  ~HangingDatabases() override {
    std::unique_lock lock(state_->mutex);
    state_->is_over = true;
    state_->changed.notify_all();
    state_->changed.wait(lock, [this] { return state_->asking == 0; });
  }
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& /*name*/) const override {
    return 1001;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& /*name*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& /*host*/) const override {
    if (answered_-- > 0) return {"10.0.0.1"};
    const std::shared_ptr<State> state = state_;  // shared: the caller may outlive the databases
    std::unique_lock lock(state->mutex);
    ++state->asking;
    state->changed.wait(lock, [&] { return state->is_over; });
    --state->asking;
    state->changed.notify_all();
    return {};
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int asking = 0;
    bool is_over = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  mutable std::atomic<int> answered_;
};

class NameLookupsTest : public ::testing::Test {
 protected:
  using Outcome = std::optional<std::optional<std::string>>;
  Outcome fetch(NameLookups& lookups, const WantedNames& wanted) {
    Outcome outcome;
    lookups.fetch(wanted,
                  [&](std::optional<std::string> problem) { outcome = std::move(problem); });
    while (!outcome && context_.run_one() > 0) {
    }
    context_.restart();
    return outcome;
  }

  asio::io_context context_{1};
  test::ManualClock clock_{TimePoint() + std::chrono::hours(1)};
  HostNames names_;
};

TEST_F(NameLookupsTest, NamesAreKeptWhenTheyAreDone) {
  NameLookups lookups(context_, clock_, names_);
  WantedNames wanted;
  wanted.users = {"root", "no such user"};
  wanted.groups = {"root"};
  wanted.hosts = {"localhost"};
  EXPECT_EQ(fetch(lookups, wanted), Outcome(std::in_place, std::nullopt));
  EXPECT_THAT(names_.missing(wanted).users, ElementsAre("no such user"));
  EXPECT_EQ(names_.missing(wanted).size(), 1U);
  EXPECT_EQ(fetch(lookups, {}), Outcome(std::in_place, std::nullopt));
}

// A node that was replaced has another address.
TEST_F(NameLookupsTest, ForAChangeNamesAreLookedUpAnewAfterAMinute) {
  const stage::SomeNames databases;
  const HostNames names(databases);
  NameLookups lookups(context_, clock_, names);
  WantedNames wanted;
  wanted.hosts = {"n1"};
  const auto done = Outcome(std::in_place, std::nullopt);
  EXPECT_EQ(fetch(lookups, wanted), done);
  clock_.set(clock_.now() + std::chrono::seconds(59));
  EXPECT_EQ(fetch(lookups, wanted), done);
  EXPECT_EQ(databases.lookups(), 1);
  clock_.set(clock_.now() + std::chrono::seconds(2));
  bool told = false;
  lookups.fetch(
      wanted, [&](const auto& problem) { told = !problem; }, NameLookups::For::question);
  EXPECT_TRUE(told) << "a question does not wait for what is kept";
  EXPECT_EQ(databases.lookups(), 1);
  EXPECT_EQ(fetch(lookups, wanted), done);
  EXPECT_EQ(databases.lookups(), 2);
  EXPECT_EQ(fetch(lookups, wanted), done);
  EXPECT_EQ(databases.lookups(), 2);
}

TEST_F(NameLookupsTest, WhatIsKeptCountsWhereTheNameServiceIsSilent) {
  const HangingDatabases databases(1);
  const HostNames names(databases);
  const Duration patience = std::chrono::milliseconds(200);
  NameLookups lookups(context_, clock_, names, {.patience = patience, .holds = Duration::zero()});
  WantedNames wanted;
  wanted.hosts = {"n1"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fetch(lookups, wanted), Outcome(std::in_place, std::nullopt)) << i;
  }
  wanted.hosts.insert("n2");
  const Outcome unknown = fetch(lookups, wanted);
  EXPECT_TRUE(unknown && *unknown) << "nothing is kept of this one";
}

TEST_F(NameLookupsTest, TooManyNamesAreRefused) {
  NameLookups lookups(context_, clock_, names_, {.names = 2});
  WantedNames wanted;
  wanted.users = {"a", "b", "c"};
  EXPECT_EQ(fetch(lookups, wanted), Outcome("more than 2 names have to be looked up"));
}

TEST_F(NameLookupsTest, NoThreadLeftIsSaid) {
  NameLookups lookups(context_, clock_, names_, {.threads_of_all = 0});
  WantedNames wanted;
  wanted.users = {"root"};
  EXPECT_EQ(fetch(lookups, wanted), Outcome("too many names are being looked up; try again"));
}

TEST_F(NameLookupsTest, QuestionsThatHangLeaveThreadsForChanges) {
  const HangingDatabases databases;
  NameLookups lookups(context_, clock_, HostNames(databases), {});
  int refused = 0;
  for (int question = 0; question < 4; ++question) {
    WantedNames wanted;
    for (int i = 0; i < 8; ++i) wanted.hosts.insert(fmt::format("h{}.{}.hangs", i, question));
    lookups.fetch(
        wanted, [&](const auto& problem) { refused += problem ? 1 : 0; },
        NameLookups::For::question);
  }
  EXPECT_EQ(refused, 3) << "the first one has the threads of all questions";
  WantedNames wanted;
  wanted.users = {"alice"};
  EXPECT_EQ(fetch(lookups, wanted), Outcome(std::in_place, std::nullopt));
}

TEST_F(NameLookupsTest, ASlowLookUpIsGivenUpAfterItsTime) {
  NameLookups lookups(context_, clock_, names_, {.patience = Duration::zero(), .threads = 1});
  WantedNames wanted;
  for (int i = 0; i < 4000; ++i) wanted.users.insert("nobody" + std::to_string(i));
  const Outcome outcome = fetch(lookups, wanted);
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_THAT(**outcome, ::testing::HasSubstr("could not be looked up in time"));
}

TEST_F(NameLookupsTest, ItsEndDoesNotWaitAndNoCallerIsToldAfterwards) {
  WantedNames wanted;
  for (int i = 0; i < 100; ++i) wanted.users.insert("nobody" + std::to_string(i));
  bool told = false;
  {
    NameLookups lookups(context_, clock_, names_);
    lookups.fetch(wanted, [&](const auto&) { told = true; });
  }
  context_.run_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(told);
}

TEST_F(NameLookupsTest, AnAnswerThatIsOnItsWayWhenItEndsHarmsNothing) {
  bool told = false;
  {
    NameLookups lookups(context_, clock_, names_, {.threads = 1, .threads_of_all = 1});
    WantedNames wanted;
    wanted.users.insert("root");
    lookups.fetch(wanted, [&](const auto&) { told = true; });
    // There is room for another thread when the first one has posted its answer and has ended.
    for (bool refused = true; refused; std::this_thread::yield()) {
      refused = false;
      lookups.fetch_anew(wanted, [&](const auto& problem) { refused = problem.has_value(); });
    }
  }
  context_.run_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace vpfs::control
