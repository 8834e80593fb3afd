// Readers of a site's book, while the office is confirmed, is not, or is lost.

#include "control/site/site_reads.h"

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>

#include "base/system_clock.h"
#include "test/support/comes_true.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::SiteStore;
using test::comes_true;
using Standing = SiteReads::Standing;
using Why = SiteStore::Why;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Duration kPatience = 200ms, kPause = 20ms;

class SiteReadsTest : public ::testing::Test {
 protected:
  void ask(std::size_t times = 1) {
    for (std::size_t i = 0; i < times; ++i) {
      reads_.ask([this](Standing standing) { told_.push_back(standing); });
    }
  }
  [[nodiscard]] bool are_told(std::size_t count) {
    return comes_true(context_, [&] { return told_.size() >= count; });
  }
  [[nodiscard]] bool is_asked(std::size_t times) {
    return comes_true(context_, [&] { return questions_.size() == times; });
  }
  void answer(const SiteStore::Outcome<void>& outcome = {}) {
    std::exchange(questions_.back(), nullptr)(outcome);
  }
  void fail(Why why) { answer(std::unexpected(SiteStore::Failure{why, "why"})); }

  std::vector<SiteReads::Told> questions_;
  asio::io_context context_;
  SystemClock clock_;
  SiteReads reads_{context_, clock_,
                   [this](SiteReads::Told told) { questions_.push_back(std::move(told)); },
                   SiteReads::Limits{.patience = kPatience, .pause = kPause}};
  std::vector<Standing> told_;
};

TEST_F(SiteReadsTest, ALeaderIsConfirmedForEachReader) {
  ask();
  EXPECT_THAT(told_, IsEmpty());
  answer();
  EXPECT_THAT(told_, ElementsAre(Standing::leads));
  ask();
  ASSERT_TRUE(is_asked(2));
  answer();
  EXPECT_THAT(told_, ElementsAre(Standing::leads, Standing::leads));
}

TEST_F(SiteReadsTest, ThoseThatComeMeanwhileShareTheNextQuestion) {
  ask();
  ask(50);
  answer();
  EXPECT_THAT(told_, SizeIs(1));
  ASSERT_TRUE(is_asked(2));
  answer();
  EXPECT_THAT(told_, AllOf(SizeIs(51), Each(Standing::leads)));
}

TEST_F(SiteReadsTest, ReadersInALoopDoNotLoadTheStore) {
  const TimePoint end = clock_.now() + 10 * kPause;
  while (clock_.now() < end) {
    told_.clear();
    ask();
    ASSERT_TRUE(comes_true(context_, [&] { return questions_.back() != nullptr; }));
    answer();
    ASSERT_THAT(told_, ElementsAre(Standing::leads));
  }
  EXPECT_LE(questions_.size(), 11U);
}

TEST_F(SiteReadsTest, ALeaderThatIsNoLongerOneTellsNothing) {
  ask();
  fail(Why::lost);
  EXPECT_THAT(told_, ElementsAre(Standing::lost));
}

TEST_F(SiteReadsTest, AFailureIsTriedAgainInThePatienceOfTheReader) {
  ask();
  fail(Why::unreachable);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_TRUE(is_asked(2));
  answer();
  EXPECT_THAT(told_, ElementsAre(Standing::leads));
}

TEST_F(SiteReadsTest, AStoreThatDoesNotAnswerHoldsNoReaderForLonger) {
  const TimePoint begun = clock_.now();
  ask(2);
  ASSERT_TRUE(are_told(2));
  EXPECT_GE(clock_.now() - begun, kPatience);
  EXPECT_THAT(told_, Each(Standing::unknown));
  ask();
  ASSERT_TRUE(are_told(3));
  EXPECT_EQ(questions_.size(), 1U);
  answer();  // to none: they were told already
  ask();
  ASSERT_TRUE(is_asked(2));
  answer();
  EXPECT_THAT(
      told_, ElementsAre(Standing::unknown, Standing::unknown, Standing::unknown, Standing::leads));
}

TEST_F(SiteReadsTest, WhatWaitsIsToldOfTheEnd) {
  ask(2);
  reads_.stop();
  ask();
  EXPECT_THAT(told_, AllOf(SizeIs(3), Each(Standing::lost)));
}

TEST(SiteReadsOfOne, NothingIsAskedWhereNoOtherOneCanLead) {
  asio::io_context context;
  const SystemClock clock;
  SiteReads reads(context, clock, nullptr, {});
  std::vector<Standing> told;
  reads.ask([&](Standing standing) { told.push_back(standing); });
  EXPECT_THAT(told, ElementsAre(Standing::leads));
}

}  // namespace
}  // namespace vpfs::coordinator
