#include "tools/vpfsctl/site/past_time.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/time_zone.h"

namespace vpfs::ctl {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'795'348'800;  // 2026-11-22 12:00:00 UTC

class PastTimes : public ::testing::Test {
 protected:
  static Result<PastTime> read(const std::string& since, const std::string& at = "",
                               const std::string& duration = "") {
    return read_past_time(since, at, duration, WallTime(std::chrono::seconds(kNow)));
  }
  static std::string problem(const std::string& since, const std::string& at = "",
                             const std::string& duration = "") {
    const auto time = read(since, at, duration);
    return time ? "" : time.error().message;
  }
  static std::int64_t from(const std::string& at) {
    const auto time = read("", at);
    return time ? time->from_at - kNow : 1;
  }

 private:
  test::TimeZone zone_{"UTC"};
};

TEST_F(PastTimes, WithoutAWordItIsTenMinutes) {
  EXPECT_EQ(read("")->back_seconds, 600U);
}

TEST_F(PastTimes, ALengthIsWrittenAsElsewhereOrWithM) {
  EXPECT_EQ(read("90s")->back_seconds, 90U);
  EXPECT_EQ(read("10m")->back_seconds, 600U);
  EXPECT_EQ(read("10 min")->back_seconds, 600U);
  EXPECT_EQ(read("24h")->back_seconds, 86'400U);
  EXPECT_EQ(read("500ms")->back_seconds, 1U);
}

TEST_F(PastTimes, ATimeOfDayIsTheLastOne) {
  EXPECT_EQ(from("11:30"), -1800);
  EXPECT_EQ(from("11:30:10"), -1790);
  EXPECT_EQ(from("12:00"), 0);
  EXPECT_EQ(from("14:05"), -24 * 3600 + 2 * 3600 + 5 * 60) << "yesterday";
  EXPECT_EQ(from("2026-11-22 11:00"), -3600);
  EXPECT_EQ(from("2026-11-21T12:00:00"), -86'400);
}

TEST_F(PastTimes, ATimeOfDayIsOneOfThisHost) {
  test::TimeZone::set("America/New_York");
  EXPECT_EQ(from("06:00"), -3600);
  EXPECT_EQ(from("2026-11-22 06:00"), -3600);
}

TEST_F(PastTimes, LastsFiveMinutesUnlessItIsSaid) {
  EXPECT_EQ(read("", "11:30")->to_at, kNow - 1500);
  EXPECT_EQ(read("", "11:30", "1h")->to_at, kNow + 1800);
}

TEST_F(PastTimes, MistakesNameTheOption) {
  EXPECT_THAT(problem("5x"), HasSubstr("--since: "));
  EXPECT_THAT(problem("0s"), HasSubstr("--since: expected a time"));
  EXPECT_THAT(problem("m"), HasSubstr("--since: "));
  EXPECT_THAT(problem("", "25:00"), HasSubstr("--at: \"25:00\": expected a time of day"));
  EXPECT_THAT(problem("", "noon"), HasSubstr("--at: \"noon\""));
  EXPECT_THAT(problem("", "2026-13-01 12:00"), HasSubstr("--at: "));
  EXPECT_THAT(problem("", "2026-02-31 12:00"), HasSubstr("--at: ")) << "not 3 March";
  EXPECT_THAT(problem("", "26-11-22 11:00"), HasSubstr("--at: ")) << "not the year 26";
  EXPECT_THAT(problem("", "2026-11-22 12:01"), HasSubstr("is yet to come"));
  EXPECT_THAT(problem("", "11:00", "5x"), HasSubstr("--for: "));
  EXPECT_EQ(problem("", "", "5m"), "--for needs --at");
  EXPECT_EQ(problem("5m", "11:00"), "--since and --at: give one of them");
}

TEST_F(PastTimes, ALengthWithoutAnEndHasOne) {
  const auto time = read("", "11:00", "2000000h");
  ASSERT_TRUE(time);
  EXPECT_GT(time->to_at, time->from_at);
}

}  // namespace
}  // namespace vpfs::ctl
