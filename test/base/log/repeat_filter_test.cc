#include "base/log/repeat_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int kWarning = 3;
constexpr int kError = 4;

class RepeatFilterTest : public ::testing::Test {
 protected:
  bool admits(const std::string& text, int level = kWarning) {
    return filter_.admit(level, text, now_);
  }
  std::vector<RepeatFilter::Summary> due() { return filter_.take_due(now_); }

  RepeatFilter filter_;
  TimePoint now_ = TimePoint(seconds(1000));
};

TEST_F(RepeatFilterTest, MessageThatRepeatsIsWrittenOnceAndThenCounted) {
  EXPECT_TRUE(admits("the disk is full"));
  for (int i = 0; i < 1234; ++i) {
    now_ += milliseconds(40);
    EXPECT_FALSE(admits("the disk is full"));
    EXPECT_THAT(due(), IsEmpty());
  }
  now_ += minutes(1) - 1234 * milliseconds(40);
  EXPECT_THAT(due(), ElementsAre(RepeatFilter::Summary{
                         kWarning, "the disk is full (repeated 1,234 times in 1 min)"}));
}

TEST_F(RepeatFilterTest, MessageThatGoesOnIsSummedUpOncePerPeriodAndNotWrittenInBetween) {
  EXPECT_TRUE(admits("no room"));
  std::size_t summaries = 0;
  for (int second = 1; second <= 600; ++second) {
    now_ += seconds(1);
    summaries += due().size();
    EXPECT_FALSE(admits("no room")) << second;
  }
  EXPECT_EQ(summaries, 10U);
}

TEST_F(RepeatFilterTest, MessageIsNewAfterAPeriodWithoutIt) {
  EXPECT_TRUE(admits("no room"));
  now_ += minutes(1);
  EXPECT_THAT(due(), IsEmpty()) << "nothing was counted";
  EXPECT_TRUE(admits("no room"));
  EXPECT_FALSE(admits("no room"));
  now_ += minutes(1);
  EXPECT_THAT(due(), SizeIs(1));
  now_ += minutes(1);
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_TRUE(admits("no room"));
}

// take_due() was not called for longer than a period.
TEST_F(RepeatFilterTest, MessageAfterALongPauseIsNewWithoutACallInBetween) {
  EXPECT_TRUE(admits("no room"));
  now_ += minutes(10);
  EXPECT_TRUE(admits("no room"));
}

TEST_F(RepeatFilterTest, FirstMessagesAboutDifferentClientsAreWritten) {
  for (int client = 1; client <= 10; ++client) {
    EXPECT_TRUE(admits("client 10.0.0." + std::to_string(client) + ":700: closed"));
  }
  EXPECT_FALSE(admits("client 10.0.0.3:700: closed")) << "its text was written";
  EXPECT_FALSE(admits("client 10.0.0.11:700: closed"));
  EXPECT_FALSE(admits("client 10.0.0.12:700: closed"));
  now_ += minutes(1);
  EXPECT_THAT(due(),
              ElementsAre(Field(&RepeatFilter::Summary::text,
                                "client 10.0.0.12:700: closed (one of 3 like it in 1 min)")));
  EXPECT_TRUE(admits("client 10.0.0.11:700: closed")) << "it is hidden for one period at most";
}

TEST_F(RepeatFilterTest, AddressesWithLettersAreAlike) {
  RepeatFilter filter({.differing = 1});
  EXPECT_TRUE(filter.admit(kWarning, "client [fe80::a1b]:700: closed", now_));
  EXPECT_FALSE(filter.admit(kWarning, "client [2001:db8::c]:9: closed", now_));
  EXPECT_TRUE(filter.admit(kWarning, "client [fe80::a1b]:700: opened", now_));
}

TEST_F(RepeatFilterTest, OtherWordsAndOtherLevelsAreOtherMessages) {
  EXPECT_TRUE(admits("virtual PFS simulation: no room"));
  EXPECT_TRUE(admits("virtual PFS backup: no room"));
  EXPECT_TRUE(admits("virtual PFS backup: no room", kError));
  EXPECT_FALSE(admits("virtual PFS backup: no room", kError));
}

TEST_F(RepeatFilterTest, FewKindsAreRememberedAndAForgottenOneIsSummedUp) {
  RepeatFilter filter({.remembered = 2});
  EXPECT_TRUE(filter.admit(kError, "a", now_));
  now_ += seconds(10);
  EXPECT_FALSE(filter.admit(kError, "a", now_));
  now_ += seconds(10);
  EXPECT_TRUE(filter.admit(kError, "b", now_));
  EXPECT_TRUE(filter.admit(kError, "c", now_));
  EXPECT_THAT(filter.take_due(now_),
              ElementsAre(RepeatFilter::Summary{kError, "a (repeated 1 time in 20 s)"}));
  EXPECT_TRUE(filter.admit(kError, "a", now_)) << "it was forgotten";
}

// Ten thousand kinds with counts take memory for a few.
TEST_F(RepeatFilterTest, EveryCountIsToldOnce) {
  std::size_t told = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = "kind ";
    for (int rest = i + 26; rest > 0; rest /= 26) text += static_cast<char>('a' + rest % 26);
    EXPECT_TRUE(admits(text));
    EXPECT_FALSE(admits(text));
    told += due().size();
  }
  told += filter_.take_all(now_).size();
  EXPECT_EQ(told, 10'000U);
  EXPECT_THAT(filter_.take_all(now_), IsEmpty());
}

TEST_F(RepeatFilterTest, LongTextIsCutInItsSummary) {
  const std::string text(100'000, 'x');
  EXPECT_TRUE(admits(text));
  EXPECT_FALSE(admits(text));
  const auto summaries = filter_.take_all(now_);
  ASSERT_THAT(summaries, SizeIs(1));
  EXPECT_LT(summaries[0].text.size(), 1100U);
  EXPECT_THAT(summaries[0].text,
              AllOf(StartsWith("xxx"), EndsWith("x... (repeated 1 time in 1 s)")));
}

TEST_F(RepeatFilterTest, TimeThatGoesBackEndsNoPeriod) {
  EXPECT_TRUE(admits("no room"));
  now_ -= seconds(30);
  EXPECT_FALSE(admits("no room"));
  EXPECT_THAT(due(), IsEmpty());
}

}  // namespace
}  // namespace vpfs
