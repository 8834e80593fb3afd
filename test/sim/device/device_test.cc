#include "sim/device/device.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/wide.h"
#include "test/sim/start_time.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

TEST(SimDevice, ARequestTakesItsFixedTimeAndItsCostAtItsPartOfTheRate) {
  Device device({.parallelism = 2, .cost_per_second = 1000, .per_request = 10ms});
  EXPECT_EQ(device.serve(100, kStart), kStart + 210ms);
  EXPECT_EQ(device.serve(50, kStart), kStart + 110ms);
  EXPECT_EQ(device.serve(1, kStart), kStart + 122ms) << "it waits for the one that is done first";
  EXPECT_EQ(device.serve(1, kStart + 1s), kStart + 1012ms) << "idle time is not made up for";
}

TEST(SimDevice, NoPartOfANanosecondIsLostOrWon) {
  std::mt19937_64 random(3);
  for (const std::uint64_t rate : {3ULL, 7'777'777ULL, 999'999'999'937ULL, 1ULL << 50}) {
    Device device({.cost_per_second = rate});
    SignedWide cost = 0;
    TimePoint end = kStart;
    for (int i = 0; i < 10'000; ++i) {
      const Cost one = 1 + random() % 1000;
      cost += one;
      end = device.serve(one, kStart);
    }
    EXPECT_TRUE((end - kStart).count() == cost * 1'000'000'000 / rate) << rate;
  }
}

// The reference is a list of the times when each server is free, in parts of a nanosecond.
TEST(SimDevice, ManyAtOnceAreServedAsAListOfThemSays) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto parallelism = static_cast<std::uint32_t>(1 + random() % 9);
    const std::uint64_t rate = 1 + random() % 1'000'000'000;
    const Duration fixed(static_cast<std::int64_t>(random() % 1'000'000));
    Device device({.parallelism = parallelism, .cost_per_second = rate, .per_request = fixed});
    std::vector<SignedWide> free(parallelism, 0);
    TimePoint now = kStart;
    for (int i = 0; i < 1000; ++i) {
      now += Duration(static_cast<std::int64_t>(random() % 2'000'000));
      const Cost cost = random() % 1'000'000;
      SignedWide& first = *std::ranges::min_element(free);
      first = std::max(first, SignedWide{now.time_since_epoch().count()} * rate) +
              SignedWide{fixed.count()} * rate + SignedWide{cost} * parallelism * 1'000'000'000;
      ASSERT_TRUE(device.serve(cost, now).time_since_epoch().count() == first / rate)
          << "seed " << seed << ", request " << i;
    }
  }
}

TEST(SimDevice, AnotherRateIsForWhatComesFromThenOn) {
  Device device({.cost_per_second = 1000});
  EXPECT_EQ(device.serve(1000, kStart), kStart + 1s);
  device.set_rate(500);
  EXPECT_EQ(device.serve(1000, kStart), kStart + 3s);
  device.set_rate(2000);
  EXPECT_EQ(device.serve(1000, kStart + 10s), kStart + 10500ms);
}

}  // namespace
}  // namespace vpfs::sim
