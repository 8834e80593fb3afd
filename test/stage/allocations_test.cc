#include "stage/allocations.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/config.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Allocations, TotalsCountFromTheBaseOfTheirTermAndLease) {
  Allocations allocations;
  TimePoint now = TimePoint{} + 1h;
  constexpr AppId kApp{3};
  const auto begin = [&](std::uint64_t term, std::uint64_t sequence) {
    allocations.begin({.epoch = {.term = term, .sequence = sequence}, .lease = 1s}, now);
  };
  begin(1, 1);
  EXPECT_EQ(allocations.elsewhere(kApp, 1000).value_or(0), 0U);
  now += 100ms;
  begin(1, 2);
  EXPECT_EQ(allocations.elsewhere(kApp, 1500), 500U);
  now += 100ms;
  EXPECT_EQ(allocations.elsewhere(kApp, 1700), 200U);
  EXPECT_EQ(allocations.elsewhere(kApp, 1600).value_or(0), 0U);
  EXPECT_EQ(allocations.counts().totals_decreased, 1U);
  EXPECT_EQ(allocations.elsewhere(kApp, 1800), 100U) << "to the largest one";
  begin(2, 0);
  EXPECT_EQ(allocations.elsewhere(kApp, 50).value_or(0), 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 60), 10U);
  allocations.end();
  begin(2, 1);
  EXPECT_EQ(allocations.elsewhere(kApp, 5000).value_or(0), 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 5001), 1U);
  allocations.forget(kApp);
  EXPECT_EQ(allocations.elsewhere(kApp, 9000).value_or(0), 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 9000 + 5 * kMaxCost), kMaxCost);
  EXPECT_EQ(allocations.counts().totals_cut, 1U);
  EXPECT_EQ(allocations.elsewhere(kApp, 9001 + 5 * kMaxCost), 1U);
}

struct Read {
  Fallback fallback;
  std::optional<Duration> longest_delay;
  std::string errors;
};
Read read(const std::string& text) {
  ConfigErrors errors("f.yaml");
  Config config;
  {
    ConfigReader reader(text, errors);
    ConfigReader control = reader.child("control");
    read_fallback(control, config);
    read_longest_delay(control, config);
  }
  return {.fallback = config.fallback,
          .longest_delay = config.longest_delay,
          .errors = errors.to_string()};
}

TEST(FallbackConfig, IsOneOfTwoWordsOrARate) {
  EXPECT_EQ(read("{}").fallback, Fallback{});
  EXPECT_EQ(read("{}").longest_delay, std::nullopt);
  EXPECT_EQ(read("control: {longest_delay: auto}").longest_delay, std::nullopt);
  EXPECT_EQ(read("control: {longest_delay: auto}").errors, "");
  EXPECT_THAT(read("control: {longest_delay: long}").errors, HasSubstr("longest_delay"));
  EXPECT_EQ(read("control: {longest_delay: 2 s}").longest_delay, 2s);
  EXPECT_THAT(read("control: {longest_delay: 0 s}").errors, HasSubstr("longest_delay"));
  EXPECT_EQ(read("control: {fallback: configured}").fallback, Fallback{});
  EXPECT_EQ(read("control: {fallback: last}").fallback.mode, Fallback::Mode::last);
  EXPECT_EQ(read("control: {fallback: 100 MiB/s}").fallback,
            (Fallback{.mode = Fallback::Mode::rate, .rate = {100 * kMiB}}));
  for (const std::string wrong : {"lst", "0", "100 MiB", "12 B/s", "-1 MiB/s"}) {
    EXPECT_THAT(read("control: {fallback: " + wrong + "}").errors,
                HasSubstr("f.yaml:1: control.fallback: \"" + wrong +
                          "\" is not a fallback: expected configured, last, or a rate"))
        << wrong;
  }
}

}  // namespace
}  // namespace vpfs::stage
