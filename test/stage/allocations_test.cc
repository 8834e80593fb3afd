#include "stage/allocations.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config.h"

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
  EXPECT_EQ(allocations.elsewhere(kApp, 1000, now).cost, 0U);
  now += 100ms;
  begin(1, 2);
  EXPECT_EQ(allocations.elsewhere(kApp, 1500, now).cost, 500U);
  now += 100ms;
  const Allocations::Elsewhere more = allocations.elsewhere(kApp, 1700, now);
  EXPECT_EQ(more.cost, 200U);
  EXPECT_EQ(more.period, 100ms);
  EXPECT_EQ(allocations.elsewhere(kApp, 1600, now).cost, 0U);
  EXPECT_EQ(allocations.counts().totals_decreased, 1U);
  EXPECT_EQ(allocations.elsewhere(kApp, 1800, now).cost, 100U) << "to the largest one";
  // Nobody told anything for long: a head is held for a lease at most.
  for (std::uint64_t i = 3; i < 100; ++i, now += 900ms) begin(1, i);
  EXPECT_EQ(allocations.elsewhere(kApp, 1900, now).period, 1s);
  begin(2, 0);
  EXPECT_EQ(allocations.elsewhere(kApp, 50, now).cost, 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 60, now).cost, 10U);
  allocations.end();
  begin(2, 1);
  EXPECT_EQ(allocations.elsewhere(kApp, 5000, now).cost, 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 5001, now).cost, 1U);
  allocations.forget(kApp);
  EXPECT_EQ(allocations.elsewhere(kApp, 9000, now).cost, 0U);
  EXPECT_EQ(allocations.elsewhere(kApp, 9000 + 5 * kMaxCost, now).cost, kMaxCost);
  EXPECT_EQ(allocations.counts().totals_cut, 1U);
  EXPECT_EQ(allocations.elsewhere(kApp, 9001 + 5 * kMaxCost, now).cost, 1U);
}

struct Read {
  Fallback fallback;
  std::string errors;
};
Read read(const std::string& text) {
  ConfigErrors errors("f.yaml");
  Config config;
  {
    ConfigReader reader(text, errors);
    ConfigReader control = reader.child("control");
    read_fallback(control, config);
  }
  return {.fallback = config.fallback, .errors = errors.to_string()};
}

TEST(FallbackConfig, IsOneOfTwoWordsOrARate) {
  EXPECT_EQ(read("{}").fallback, Fallback{});
  EXPECT_EQ(read("control: {fallback: configured}").fallback, Fallback{});
  EXPECT_EQ(read("control: {fallback: last}").fallback.mode, Fallback::Mode::last);
  EXPECT_EQ(read("control: {fallback: 100 MiB/s}").fallback,
            (Fallback{.mode = Fallback::Mode::rate, .rate = {100 * kMiB}}));
  for (const std::string wrong : {"lst", "0", "100 MiB", "12 B/s", "-1 MiB/s"}) {
    EXPECT_THAT(read("control: {fallback: " + wrong + "}").errors,
                HasSubstr("f.yaml:1: control.fallback: \"" + wrong +
                          "\" is neither configured nor last nor a rate"))
        << wrong;
  }
}

}  // namespace
}  // namespace vpfs::stage
