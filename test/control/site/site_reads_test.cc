// What a coordinator may tell of its book, while the store is slow, away, or another one's.

#include "control/site/site_reads.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "test/support/comes_true.h"
#include "test/support/control/scripted_store.h"

namespace vpfs::coordinator {
namespace {

using test::comes_true;

using namespace std::chrono_literals;
using control::SiteStore;
using Standing = SiteReads::Standing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SiteReadsTest : public ::testing::Test {
 protected:
  explicit SiteReadsTest(bool has_standbys = true)
      : thread_(std::make_unique<test::ScriptedStore>(
            state_, SiteStore::Traits{.has_standbys = has_standbys})) {}
  ~SiteReadsTest() override {
    reads_.stop();
    state_.hold(false);
  }

  void ask(std::size_t times = 1) {
    for (std::size_t i = 0; i < times; ++i) {
      reads_.ask([this](Standing standing) { told_.push_back(standing); });
    }
  }
  [[nodiscard]] bool are_told(std::size_t count) {
    return comes_true(context_, [&] { return told_.size() >= count; });
  }
  [[nodiscard]] std::size_t questions() {
    const std::lock_guard lock(state_.mutex);
    return state_.writes;
  }

  test::ScriptedStore::State state_;
  control::StoreThread thread_;
  asio::io_context context_;
  control::StoreCaller caller_{
      thread_, [this](std::function<void()> what) { asio::post(context_, std::move(what)); }};
  int lost_ = 0;
  SystemClock clock_;
  SiteReads reads_{context_, clock_, caller_, [this] { ++lost_; },
                   SiteReads::Limits{.patience = 200ms, .pause = 20ms}};
  std::vector<Standing> told_;
};

class SiteReadsOfOne : public SiteReadsTest {
 protected:
  SiteReadsOfOne() : SiteReadsTest(false) {}
};

TEST_F(SiteReadsTest, ALeaderIsConfirmedForEachReader) {
  ask();
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_TRUE(are_told(1));
  ask();
  ASSERT_TRUE(are_told(2));
  EXPECT_THAT(told_, Each(Standing::leads));
  EXPECT_EQ(questions(), 2U);
}

TEST_F(SiteReadsTest, ThoseThatComeMeanwhileShareTheNextQuestion) {
  state_.hold(true);
  ask();
  ASSERT_TRUE(comes_true(context_, [&] { return questions() == 1; }));
  ask(50);
  state_.hold(false);
  ASSERT_TRUE(are_told(51));
  EXPECT_THAT(told_, AllOf(SizeIs(51), Each(Standing::leads)));
  EXPECT_EQ(questions(), 2U);
}

TEST_F(SiteReadsTest, ReadersInALoopDoNotLoadTheStore) {
  const TimePoint end = clock_.now() + 200ms;
  while (clock_.now() < end) {
    told_.clear();
    ask();
    ASSERT_TRUE(are_told(1));
    ASSERT_THAT(told_, ElementsAre(Standing::leads));
  }
  EXPECT_LE(questions(), 11U);
}

TEST_F(SiteReadsTest, ALeaderThatIsNoLongerOneTellsNothing) {
  state_.fail(SiteStore::Why::lost, "another coordinator leads");
  ask();
  ASSERT_TRUE(are_told(1));
  EXPECT_THAT(told_, ElementsAre(Standing::lost));
  EXPECT_EQ(lost_, 1);
}

TEST_F(SiteReadsTest, AStoreThatCannotBeReachedLeavesItOpen) {
  state_.fail(SiteStore::Why::unreachable, "etcd cannot be connected to");
  ask(2);
  ASSERT_TRUE(are_told(2));
  EXPECT_THAT(told_, ElementsAre(Standing::unknown, Standing::leads));
  EXPECT_EQ(lost_, 0);
}

TEST_F(SiteReadsTest, AStoreThatDoesNotAnswerHoldsNoReaderForLong) {
  state_.hold(true);
  ask();
  ASSERT_TRUE(comes_true(context_, [&] { return questions() == 1; }));
  ask(3);
  ASSERT_TRUE(are_told(4));
  ask();  // it need not wait to learn the same
  EXPECT_THAT(told_, AllOf(SizeIs(5), Each(Standing::unknown)));
  state_.hold(false);
  ASSERT_TRUE(comes_true(context_, [&] {
    told_.clear();
    ask();
    return told_.empty();  // it is asked for again
  }));
  ASSERT_TRUE(are_told(1));
  EXPECT_THAT(told_, ElementsAre(Standing::leads));
  EXPECT_EQ(questions(), 2U);
}

TEST_F(SiteReadsTest, WhatWaitsIsToldOfTheEnd) {
  state_.hold(true);
  ask();
  ASSERT_TRUE(comes_true(context_, [&] { return questions() == 1; }));
  ask();
  reads_.stop();
  ask();
  EXPECT_THAT(told_, AllOf(SizeIs(3), Each(Standing::lost)));
}

TEST_F(SiteReadsOfOne, NothingIsAskedWhereNoOtherOneCanLead) {
  ask();
  EXPECT_THAT(told_, ElementsAre(Standing::leads));
  EXPECT_EQ(questions(), 0U);
}

}  // namespace
}  // namespace vpfs::coordinator
