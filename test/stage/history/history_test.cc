#include "stage/history/history.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/stage/history/activities.h"

namespace vpfs::stage {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct Seen {
  std::map<std::string, std::uint64_t> bytes;  // "": others
  std::vector<HistorySpan> spans;
  std::uint64_t sum = 0;
};

Seen read(const History& history, WallTime from, WallTime to) {
  Seen seen;
  history.read(from, to, [&](const HistorySpan& span, const std::vector<HistoryRow>& rows) {
    seen.spans.push_back(span);
    for (const HistoryRow& row : rows) {
      const HistoryName* const name = history.name(row, span);
      const std::uint64_t bytes = row.measures.of(Measure::read_bytes);
      seen.bytes[name == nullptr ? "" : name->info->name] += bytes;
      seen.sum += bytes;
    }
  });
  return seen;
}

class HistoryTest : public ::testing::Test {
 protected:
  void run(seconds time, std::uint64_t bytes) {
    for (seconds i(0); i < time; ++i) {
      activities_.moves(activities_.reading(1), bytes);
      activities_.end_second(history_);
    }
  }
  [[nodiscard]] Seen last(Duration time) const {
    return read(history_, activities_.now() - std::chrono::duration_cast<WallTime::duration>(time),
                activities_.now());
  }

  Activities activities_;
  History history_;
};

TEST_F(HistoryTest, KnowsNothingBeforeASecondHasEnded) {
  EXPECT_FALSE(history_.begin());
  EXPECT_TRUE(last(minutes(10)).spans.empty());
}

TEST_F(HistoryTest, SecondsAreKeptForTwoMinutes) {
  run(minutes(2), 1000);
  const Seen seen = last(minutes(1));
  EXPECT_EQ(seen.spans.size(), 60U);
  EXPECT_EQ(seen.sum, 60'000U);
  EXPECT_EQ(seen.bytes.at("vpfs-1"), 60'000U);
}

TEST_F(HistoryTest, LongerAgoItIsKnownForTenSecondsAndForMinutes) {
  run(hours(2), 1000);
  EXPECT_EQ(last(minutes(30)).spans.front().length, seconds(10));
  EXPECT_EQ(last(minutes(90)).spans.front().length, minutes(1));
}

TEST_F(HistoryTest, NoSecondIsMissedOrTwiceInWhatIsRead) {
  run(hours(3) + seconds(37), 1000);
  for (const Duration time : {Duration(minutes(1)), Duration(minutes(20)), Duration(hours(2))}) {
    const Seen seen = last(time);
    WallTime end = seen.spans.front().begin;
    for (const HistorySpan& span : seen.spans) {
      EXPECT_EQ(span.begin, end);
      end = span.end;
    }
    EXPECT_EQ(end, activities_.now());
    const auto length = std::chrono::duration_cast<seconds>(end - seen.spans.front().begin).count();
    // Sums are kept with a precision of 1/2048.
    EXPECT_NEAR(static_cast<double>(seen.sum), static_cast<double>(length) * 1000,
                static_cast<double>(length) * 0.5);
    EXPECT_LE(seen.spans.front().begin, activities_.now() - time);
  }
}

TEST_F(HistoryTest, ADayIsKept) {
  run(hours(30), 1000);
  const Seen seen = last(hours(24));
  EXPECT_NEAR(static_cast<double>(seen.sum), 86'400'000, 86'400'000 / 1000);
  ASSERT_TRUE(history_.begin());
  EXPECT_LE(*history_.begin(), activities_.now() - hours(24));
  EXPECT_GT(*history_.begin(), activities_.now() - hours(24) - minutes(2));
}

TEST_F(HistoryTest, TheBusiestHaveRowsAndTheOthersOneTogether) {
  for (std::uint32_t app = 0; app < 300; ++app) {
    activities_.moves(activities_.reading(app), app < 128 ? 2000 + app : 1000);
  }
  activities_.end_second(history_);
  const Seen seen = last(seconds(1));
  EXPECT_EQ(seen.bytes.size(), 129U);
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("vpfs-127")), 2127, 1);
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("")), 172'000, 84);
}

// Both have one place in a row.
TEST_F(HistoryTest, TimesOfKeptSlotsAndOfOtherClassesAreToldApart) {
  for (std::uint32_t app = 0; app < 140; ++app) {
    const bool has_classes = app % 2 == 0;
    Measures what;
    what.of(Measure::cost) = 1000 - app;
    what.of(Measure::held_by_class) = has_classes ? 100 : 0;
    what.of(Measure::held_by_kept_slot) = has_classes ? 0 : 200;
    activities_.does(activities_.reading(app), what);
  }
  activities_.end_second(history_);
  const auto see = [&](const HistorySpan& span, const std::vector<HistoryRow>& rows) {
    ASSERT_EQ(rows.size(), 129U);
    for (const HistoryRow& row : std::span(rows).first(128)) {
      const HistoryName* const name = history_.name(row, span);
      ASSERT_NE(name, nullptr);
      const bool has_classes = std::to_underlying(name->id.app) % 2 == 0;
      EXPECT_EQ(row.measures.of(Measure::held_by_class), has_classes ? 100U : 0U);
      EXPECT_EQ(row.measures.of(Measure::held_by_kept_slot), has_classes ? 0U : 200U);
    }
    // The others have some of each. The sum counts as that of which there was more.
    EXPECT_EQ(history_.name(rows.back(), span), nullptr);
    EXPECT_EQ(rows.back().measures.of(Measure::held_by_kept_slot), 6U * 100 + 6 * 200);
    EXPECT_EQ(rows.back().measures.of(Measure::held_by_class), 0U);
  };
  history_.read(activities_.now() - seconds(1), activities_.now(), see);
}

TEST_F(HistoryTest, AMinuteChoosesItsBusiestAnew) {
  // One is busy once, and the others are a little busy each second.
  for (std::uint32_t second = 0; second < 60; ++second) {
    for (std::uint32_t app = 0; app < 200; ++app) {
      activities_.moves(activities_.reading(app), app < 128 ? 20 : 19);
    }
    if (second == 30) activities_.moves(activities_.reading(999), 1'000'000);
    activities_.end_second(history_);
  }
  run(hours(1) + minutes(2), 1);
  const Seen seen = last(hours(2));
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("vpfs-999")), 1'000'000, 1000);
  EXPECT_LE(seen.bytes.size(), 130U);
}

TEST_F(HistoryTest, AnEndedVirtualPfsIsKnownAndItsNumberMayBeAnothers) {
  activities_.moves(activities_.reading(7, "job-1", 0), 500);
  activities_.end_second(history_);
  run(minutes(5), 1);
  activities_.moves(activities_.reading(7, "job-2", 1), 700);
  activities_.end_second(history_);
  const Seen seen = last(minutes(10));
  EXPECT_EQ(seen.bytes.at("job-1"), 500U);
  EXPECT_EQ(seen.bytes.at("job-2"), 700U);
}

// More names than there are numbers: the oldest are forgotten, and nothing is told of another.
TEST_F(HistoryTest, ANameThatIsForgottenHasNoRow) {
  for (std::uint32_t app = 0; app < 6000; ++app) {
    activities_.moves(activities_.reading(1, fmt::format("job-{}", app), app), 100 + app);
    activities_.end_second(history_);
  }
  const Seen seen = last(hours(2));
  EXPECT_FALSE(seen.bytes.contains("job-0"));
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("job-5999")), 6099, 2);
  for (const auto& [name, bytes] : seen.bytes) {
    if (!name.empty()) {
      EXPECT_NEAR(static_cast<double>(bytes), 100 + std::stod(name.substr(4)), 5) << name;
    }
  }
}

TEST_F(HistoryTest, ASpanHasTheVersionOfTheRulesAtItsEnd) {
  run(seconds(30), 1);
  activities_.set_rules(2);
  run(seconds(30), 1);
  const Seen seen = last(minutes(1));
  EXPECT_EQ(seen.spans.front().rules, 1U);
  EXPECT_EQ(seen.spans.back().rules, 2U);
}

// What a run has kept, in a run that follows.
class RestoredHistory : public HistoryTest {
 protected:
  void restart() {
    history_.end_minute();
    next_ = std::make_unique<History>();
    for (std::size_t i = history_.minutes(); i-- > 0;) next_->restore(history_.minute(i));
  }
  [[nodiscard]] Seen last_of_next(Duration time) const {
    return read(*next_, activities_.now() - std::chrono::duration_cast<WallTime::duration>(time),
                activities_.now());
  }

  std::unique_ptr<History> next_;
};

TEST_F(RestoredHistory, HasEveryMinuteAndTheSecondsOfTheLastOne) {
  run(hours(2) + seconds(37), 1000);
  restart();
  const Seen seen = last_of_next(hours(24));
  EXPECT_EQ(seen.bytes.size(), 2U) << "the name, and no others";
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("vpfs-1")), 7'237'000, 7'237);
  EXPECT_EQ(seen.spans.size(), 121U);
  EXPECT_EQ(seen.spans.back().length, seconds(37));
  EXPECT_EQ(seen.spans.back().end, activities_.now());
  EXPECT_EQ(next_->begin(), history_.begin());
}

TEST_F(RestoredHistory, GoesOnWithItsNextSecond) {
  run(minutes(10), 1000);
  restart();
  for (int i = 0; i < 95; ++i) {
    activities_.moves(activities_.reading(1), 500);
    activities_.end_second(*next_);
  }
  const Seen seen = last_of_next(minutes(5));
  EXPECT_EQ(seen.spans.front().length, minutes(1));
  EXPECT_EQ(seen.spans.back().length, seconds(1));
  EXPECT_NEAR(static_cast<double>(seen.bytes.at("vpfs-1")), 47'500 + 4 * 60'000, 200);
  EXPECT_EQ(last_of_next(seconds(30)).spans.size(), 30U) << "seconds where there are seconds";
  EXPECT_EQ(next_->minutes_ended(), 1U);
}

TEST_F(RestoredHistory, HasNoMoreNamesThanNumbers) {
  for (std::uint32_t minute = 0; minute < 100; ++minute) {
    for (std::uint32_t app = 0; app < 100; ++app) {
      activities_.moves(activities_.reading(app, fmt::format("job-{}-{}", minute, app), minute),
                        100);
    }
    for (int i = 0; i < 60; ++i) activities_.end_second(history_);
  }
  restart();
  const Seen seen = last_of_next(hours(24));
  EXPECT_EQ(seen.sum, 1'000'000U) << "what has lost its name counts with others";
  EXPECT_TRUE(seen.bytes.contains("job-99-99"));
  EXPECT_LE(seen.bytes.size(), HistoryNames::kMost + 1);
}

TEST_F(RestoredHistory, NothingIsMadeOfNothing) {
  restart();
  EXPECT_EQ(next_->minutes(), 0U);
  EXPECT_FALSE(next_->begin());
}

}  // namespace
}  // namespace vpfs::stage
