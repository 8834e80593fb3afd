// A leader's hold on its office, and confirmations that others ask for.

#include "control/coordinator/office/office.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "test/support/comes_true.h"
#include "test/support/control/scripted_store.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::SiteStore;
using test::comes_true;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kLease = 800ms;

class OfficeTest : public ::testing::Test {
 protected:
  ~OfficeTest() override {
    office_.stop();
    state_.hold(false);
  }

  void ask() {
    office_.confirmation()([this](const SiteStore::Outcome<void>& outcome) {
      told_.push_back(outcome ? "confirmed" : outcome.error().text);
    });
  }
  [[nodiscard]] bool are_told(std::size_t count) {
    return comes_true(context_, [&] { return told_.size() >= count; });
  }
  [[nodiscard]] std::size_t calls() {
    const std::lock_guard lock(state_.mutex);
    return state_.writes;
  }

  test::ScriptedStore::State state_;
  control::StoreThread thread_{std::make_unique<test::ScriptedStore>(
      state_, SiteStore::Traits{.has_standbys = true, .lease = kLease})};
  asio::io_context context_;
  SystemClock clock_;
  std::vector<std::string> over_;
  Office office_{context_, clock_, thread_, election::Tenure(kLease, clock_.now()),
                 [this](const std::string& why) { over_.push_back(why); }};
  std::vector<std::string> told_;
};

TEST_F(OfficeTest, ThoseThatAskMeanwhileShareTheNextConfirmation) {
  state_.hold(true);
  ask();
  ASSERT_TRUE(comes_true(context_, [&] { return calls() == 1; }));
  for (int i = 0; i < 20; ++i) ask();
  state_.hold(false);
  ASSERT_TRUE(are_told(21));
  EXPECT_EQ(calls(), 2U);
}

// The leader's own confirmations do not come, since nothing has started them.
TEST_F(OfficeTest, WhatOthersAskForCountsForTheLeader) {
  const TimePoint end = clock_.now() + 2 * kLease;
  while (clock_.now() < end) {
    told_.clear();
    ask();
    ASSERT_TRUE(are_told(1));
    ASSERT_TRUE(office_.holds());
  }
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(OfficeTest, ALostOfficeIsToldAndOver) {
  state_.fail(SiteStore::Why::lost, "another one has it");
  ask();
  ASSERT_TRUE(are_told(1));
  EXPECT_THAT(told_, ElementsAre("another one has it"));
  EXPECT_THAT(over_, ElementsAre("another coordinator leads"));
  EXPECT_FALSE(office_.holds());
}

TEST_F(OfficeTest, ATroubledStoreIsToldAndTriedAgain) {
  state_.fail(SiteStore::Why::unreachable, "etcd cannot be connected to");
  ask();
  ASSERT_TRUE(are_told(1));
  EXPECT_EQ(office_.trouble(), "etcd cannot be connected to");
  EXPECT_TRUE(office_.holds());
  ask();
  ASSERT_TRUE(are_told(2));
  EXPECT_THAT(told_, ElementsAre("etcd cannot be connected to", "confirmed"));
  EXPECT_EQ(office_.trouble(), "");
}

TEST_F(OfficeTest, NoneIsToldAfterTheEnd) {
  state_.hold(true);
  ask();
  ASSERT_TRUE(comes_true(context_, [&] { return calls() == 1; }));
  ask();
  office_.stop();
  state_.hold(false);
  ask();
  context_.run_for(50ms);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace vpfs::coordinator
