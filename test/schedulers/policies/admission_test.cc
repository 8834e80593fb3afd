#include "schedulers/policies/admission.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/wide.h"
#include "schedulers/share.h"
#include "test/schedulers/capacities.h"
#include "test/schedulers/draw.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

TEST(Admission, OneCurveFitsWhenItsBurstIsDoneWithinItsLatency) {
  const Admission empty(kEdfCapacity, 0);
  EXPECT_TRUE(empty.fits(AppId{0}, {.burst = 1000, .rate = 1, .latency = 1ms}));
  EXPECT_FALSE(empty.fits(AppId{0}, {.burst = 1001, .rate = 1, .latency = 1ms}));
  EXPECT_FALSE(empty.fits(AppId{0}, {.burst = 1000, .rate = 1, .latency = 1ms - 1ns}));
}

TEST(Admission, WhatMayBeAheadAtTheServerComesOffEveryLatency) {
  const Admission empty(kEdfCapacity, 400);
  EXPECT_TRUE(empty.fits(AppId{0}, {.burst = 600, .rate = 1, .latency = 1ms}));
  EXPECT_FALSE(empty.fits(AppId{0}, {.burst = 601, .rate = 1, .latency = 1ms}));
}

TEST(Admission, TheRatesTogetherStayWithinTheCapacity) {
  Admission admission(kEdfCapacity, 0);
  EXPECT_TRUE(admission.fits(AppId{0}, {.burst = 0, .rate = kEdfCapacity, .latency = 1s}));
  EXPECT_FALSE(admission.fits(AppId{0}, {.burst = 0, .rate = kEdfCapacity + 1, .latency = 1s}));
  admission.admit(AppId{0}, {.burst = 0, .rate = 600'000, .latency = 1s});
  EXPECT_TRUE(admission.fits(AppId{1}, {.burst = 0, .rate = 400'000, .latency = 1s}));
  EXPECT_FALSE(admission.fits(AppId{1}, {.burst = 0, .rate = 400'001, .latency = 1s}));
}

// The first curve takes 500 at 1 ms and half of the capacity from then on. 1000 more are done when
// 500 + 1000 + 0.5 (t - 1000) <= t, which is t = 2 ms.
TEST(Admission, ALaterDeadlineLeavesRoomForWhatComesBeforeIt) {
  Admission admission(kEdfCapacity, 0);
  admission.admit(AppId{0}, {.burst = 500, .rate = kEdfCapacity / 2, .latency = 1ms});
  EXPECT_TRUE(admission.fits(AppId{1}, {.burst = 1000, .rate = 0, .latency = 2ms}));
  EXPECT_FALSE(admission.fits(AppId{1}, {.burst = 1000, .rate = 0, .latency = 2ms - 1us}));
  EXPECT_EQ(admission.least_latency(AppId{1}, {.burst = 1000, .rate = 0, .latency = {}}), 2ms);
}

TEST(Admission, AnEarlierDeadlineMayNotHarmALaterOne) {
  Admission admission(kEdfCapacity, 0);
  admission.admit(AppId{0}, {.burst = 1000, .rate = 0, .latency = 2ms});
  EXPECT_TRUE(admission.fits(AppId{1}, {.burst = 1000, .rate = 0, .latency = 1ms}));
  EXPECT_FALSE(admission.fits(AppId{1}, {.burst = 1000, .rate = 1000, .latency = 1ms}))
      << "one more comes between the deadlines";
}

TEST(Admission, AFlowIsNotCountedBesideItself) {
  Admission admission(kEdfCapacity, 0);
  const ArrivalCurve all = {.burst = 1000, .rate = kEdfCapacity, .latency = 1ms};
  admission.admit(AppId{0}, all);
  EXPECT_TRUE(admission.fits(AppId{0}, all));
  EXPECT_FALSE(admission.fits(AppId{1}, {.burst = 1, .rate = 0, .latency = 1ms}));
  admission.leave(AppId{0});
  EXPECT_TRUE(admission.fits(AppId{1}, all));
}

TEST(Admission, TheCurveOfATotalBringsTheLastRequestInTime) {
  const auto curve = Admission::curve_of(10'000, 7, 3s, 1s);
  EXPECT_EQ(curve, (ArrivalCurve{.burst = 7, .rate = 5'000, .latency = 1s}));
  EXPECT_EQ(Admission::curve_of(10'001, 7, 3s, 1s).value_or(ArrivalCurve{}).rate, 5'001U)
      << "rounded up";
  EXPECT_FALSE(Admission::curve_of(1, 0, 1s, 1s));
  EXPECT_FALSE(Admission::curve_of(1, 0, -1s, 1s));
  EXPECT_FALSE(Admission::curve_of(kMaxCost, 0, 1s + 1ns, 1s)) << "above the largest rate";
}

// A server and curves that fill it: from a tenth to a little too much.
struct FilledServer {
  std::uint64_t capacity;
  Cost ahead;
  std::vector<ArrivalCurve> curves;
};

FilledServer random_case(Draw& random) {
  FilledServer made = {
      .capacity = random(1, 20) * 100'000, .ahead = random(0, 3) * 20'000, .curves = {}};
  const std::uint64_t count = random(1, 8);
  const std::uint64_t percent = random(10, 120);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t most = made.capacity * percent / 100 / count;
    std::uint64_t latency = random(1, 1000);  // in ms
    if (i > 0 && random(0, 3) == 0) {
      latency = static_cast<std::uint64_t>(made.curves.front().latency / 1ms);
    }
    made.curves.push_back({.burst = random(0, most * latency / 1000),
                           .rate = random(0, most),
                           .latency = std::chrono::milliseconds(latency)});
    if (random(0, 3) == 0) made.curves.back().latency += std::chrono::nanoseconds(random(0, 1000));
  }
  return made;
}

// The condition as it is written, at one t.
bool holds_at(const FilledServer& one, Duration t) {
  SignedWide demand = 0;
  for (const ArrivalCurve& curve : one.curves) {
    if (curve.latency > t) continue;
    demand += SignedWide{curve.burst} * 1'000'000'000 +
              SignedWide{curve.rate} * (t - curve.latency).count();
  }
  return demand <= SignedWide{one.capacity} * t.count() - SignedWide{one.ahead} * 1'000'000'000;
}

bool holds_everywhere(const FilledServer& one, Draw& random) {
  std::uint64_t rates = 0;
  Duration first = Duration::max();
  for (const ArrivalCurve& curve : one.curves) {
    rates += curve.rate;
    first = std::min(first, curve.latency);
  }
  if (rates > one.capacity) return false;
  std::vector<Duration> times = {first, 100h};
  for (const ArrivalCurve& curve : one.curves) {
    for (const Duration by : {-1ns, 0ns, 1ns}) times.push_back(curve.latency + by);
  }
  for (Duration t = first; t < 1100ms; t += t / 8 + 1us) times.push_back(t);
  for (int i = 0; i < 20; ++i) times.emplace_back(random(0, 2'000'000'000));
  return std::ranges::all_of(times, [&](Duration t) { return t < first || holds_at(one, t); });
}

TEST(Admission, FitsWhenTheConditionHoldsAtEveryTime) {
  constexpr std::uint64_t kSeed = 1;
  Draw random(kSeed);
  int fitted = 0;
  for (int round = 0; round < 3000; ++round) {
    const FilledServer one = random_case(random);
    Admission admission(one.capacity, one.ahead);
    for (std::uint32_t i = 1; i < one.curves.size(); ++i) {
      admission.admit(AppId{i}, one.curves[i]);
    }
    const bool fits = admission.fits(AppId{0}, one.curves.front());
    ASSERT_EQ(fits, holds_everywhere(one, random)) << "seed " << kSeed << ", round " << round;
    fitted += fits ? 1 : 0;
  }
  std::cout << "seed " << kSeed << ": " << fitted << " of 3000 sets fit\n";
  EXPECT_GT(fitted, 300);
  EXPECT_LT(fitted, 2700);
}

// Admits the curves one after another while they fit; returns how many did.
std::size_t admit_all(Admission& admission, const std::vector<ArrivalCurve>& curves) {
  for (std::uint32_t i = 0; i < curves.size(); ++i) {
    if (!admission.fits(AppId{i}, curves[i])) return i;
    admission.admit(AppId{i}, curves[i]);
  }
  return curves.size();
}

TEST(Admission, TheOrderOfAdmissionDoesNotMatter) {
  constexpr std::uint64_t kSeed = 2;
  Draw random(kSeed);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    FilledServer one = random_case(random);
    Admission in_order(one.capacity, one.ahead);
    const bool fits = admit_all(in_order, one.curves) == one.curves.size();
    refused += fits ? 0 : 1;
    std::ranges::shuffle(one.curves, random.engine());
    Admission shuffled(one.capacity, one.ahead);
    ASSERT_EQ(admit_all(shuffled, one.curves) == one.curves.size(), fits)
        << "seed " << kSeed << ", round " << round;
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 900);
}

TEST(Admission, TheLeastLatencyFitsAndAMicrosecondLessDoesNot) {
  constexpr std::uint64_t kSeed = 3;
  Draw random(kSeed);
  int found = 0;
  for (int round = 0; round < 1000; ++round) {
    const FilledServer one = random_case(random);
    Admission admission(one.capacity, one.ahead);
    const auto app = AppId{static_cast<std::uint32_t>(admit_all(admission, one.curves))};
    ArrivalCurve asked = random_case(random).curves.front();
    const std::optional<Duration> least = admission.least_latency(app, asked);
    const auto fits_with = [&](Duration latency) {
      asked.latency = latency;
      return admission.fits(app, asked);
    };
    if (!least) {
      ASSERT_FALSE(fits_with(24h)) << "seed " << kSeed << ", round " << round;
      continue;
    }
    ++found;
    ASSERT_EQ(*least % 1us, 0ns);
    ASSERT_TRUE(fits_with(*least)) << "seed " << kSeed << ", round " << round;
    ASSERT_FALSE(*least > 0ns && fits_with(*least - 1us))
        << "seed " << kSeed << ", round " << round;
    for (int i = 0; i < 20; ++i) {
      const Duration latency(random(0, 3'000'000'000));
      ASSERT_TRUE(fits_with(*least + latency));
      if (latency <= *least - 1us) {
        ASSERT_FALSE(fits_with(latency));
      }
    }
  }
  EXPECT_GT(found, 500);
}

TEST(Admission, TheLeastSpanFitsAndAMillisecondLessDoesNot) {
  constexpr std::uint64_t kSeed = 4;
  Draw random(kSeed);
  int found = 0;
  for (int round = 0; round < 1000; ++round) {
    const FilledServer one = random_case(random);
    Admission admission(one.capacity, one.ahead);
    const auto app = AppId{static_cast<std::uint32_t>(admit_all(admission, one.curves))};
    const Cost total = random(1, 100) * one.capacity;
    const Cost burst = random(0, one.capacity / 10);
    const Duration latency = std::chrono::milliseconds(random(1, 2000));
    const auto fits_within = [&](Duration span) {
      const auto curve = Admission::curve_of(total, burst, span, latency);
      return curve && admission.fits(app, *curve);
    };
    const std::optional<Duration> least = admission.least_span(app, total, burst, latency);
    if (!least) {
      ASSERT_FALSE(fits_within(2400h)) << "seed " << kSeed << ", round " << round;
      continue;
    }
    ++found;
    ASSERT_EQ(*least % 1ms, 0ns);
    ASSERT_TRUE(fits_within(*least)) << "seed " << kSeed << ", round " << round;
    ASSERT_FALSE(fits_within(*least - 1ms)) << "seed " << kSeed << ", round " << round;
    for (int i = 0; i < 20; ++i) {
      const Duration span = std::chrono::microseconds(random(0, 1'000'000'000));
      ASSERT_TRUE(fits_within(*least + span));
      if (span <= *least - 1ms) {
        ASSERT_FALSE(fits_within(span));
      }
    }
  }
  EXPECT_GT(found, 400);
}

TEST(Admission, ExtremesDoNotOverflow) {
  constexpr std::uint64_t kMostCapacity = std::uint64_t{1} << 62;
  const std::vector<Duration> latencies = {Duration::zero(), 1ns, 24h, Duration::max()};
  for (const std::uint64_t capacity : {std::uint64_t{1}, Share::kMaxRate, kMostCapacity}) {
    for (const Cost ahead : {Cost{0}, kMaxCost, ~Cost{0}}) {
      Admission admission(capacity, ahead);
      for (std::uint32_t i = 0; i < 500; ++i) {
        admission.admit(AppId{i}, {.burst = kMaxCost,
                                   .rate = std::min(Share::kMaxRate, capacity / 500),
                                   .latency = Duration::max()});
      }
      for (const Duration latency : latencies) {
        for (const Cost burst : {Cost{0}, Cost{1}, kMaxCost, ~Cost{0}}) {
          for (const std::uint64_t rate : {std::uint64_t{0}, Share::kMaxRate, ~std::uint64_t{0}}) {
            const bool fits =
                admission.fits(AppId{500}, {.burst = burst, .rate = rate, .latency = latency});
            EXPECT_FALSE(fits && rate > capacity);
            EXPECT_FALSE(fits && latency == 0ns && (burst > 0 || ahead > 0));
          }
        }
      }
    }
  }
  const Admission large(kMostCapacity, 0);
  EXPECT_TRUE(large.fits(AppId{0}, {.burst = ~Cost{0}, .rate = 0, .latency = Duration::max()}));
  EXPECT_FALSE(Admission::curve_of(~Cost{0}, 0, 1ns, 0ns));
  EXPECT_TRUE(Admission::curve_of(~Cost{0}, ~Cost{0}, Duration::max(), 0ns));
  EXPECT_FALSE(
      Admission(1, 0).least_latency(AppId{0}, {.burst = kMaxCost, .rate = 1, .latency = {}}));
  EXPECT_FALSE(Admission(1, 0).least_span(AppId{0}, ~Cost{0}, ~Cost{0}, Duration::max() / 2));
}

TEST(Admission, CurvesOfManyLatenciesFitUpToTheCapacity) {
  Admission admission(1'000'000'000, 0);
  for (std::uint32_t app = 0; app < 2000; ++app) {
    const ArrivalCurve each = {.burst = 100, .rate = 10, .latency = (1 + app % 100) * 1s};
    ASSERT_TRUE(admission.fits(AppId{app}, each));
    admission.admit(AppId{app}, each);
  }
  const ArrivalCurve rest = {.burst = 0, .rate = 1'000'000'000 - 20'000, .latency = 200s};
  EXPECT_TRUE(admission.fits(AppId{2000}, rest));
  EXPECT_FALSE(admission.fits(AppId{2000}, {.burst = 0, .rate = rest.rate + 1, .latency = 200s}));
  admission.admit(AppId{2000}, rest);
  EXPECT_FALSE(admission.fits(AppId{2001}, {.burst = 0, .rate = 1, .latency = 1h}));
  EXPECT_TRUE(admission.fits(AppId{2000}, rest)) << "its own curve does not count";
  admission.leave(AppId{5});
  EXPECT_TRUE(admission.fits(AppId{2001}, {.burst = 0, .rate = 10, .latency = 1h}));
}

}  // namespace
}  // namespace vpfs
