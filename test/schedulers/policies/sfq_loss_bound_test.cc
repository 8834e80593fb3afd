// What anticipation may cost holds in every second, whoever tries to make it cost more.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/schedulers/policies/anticipating.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kDeviceSpeed = 100 * kMiB;

struct Attack {
  const char* name;
  std::uint32_t ids;
  Duration think;
  std::uint32_t late_one_in;
  Duration late;
  std::uint32_t weight;
  std::uint32_t parallelism;
};

// The least that the server did in any second, as a part of what it can do.
double worst_second(const Attack& attack, std::uint64_t size, std::uint64_t seed,
                    std::uint32_t max_loss = kMaxLoss) {
  const auto scheduler = anticipating(16, max_loss);
  std::vector<FlowWork> works = {{.outstanding = 32, .least_size = size, .most_size = size}};
  for (std::uint32_t i = 0; i < attack.ids; ++i) {
    works.push_back({.share = {.weight = attack.weight},
                     .outstanding = 1,
                     .least_size = size,
                     .most_size = size,
                     .think = attack.think,
                     .think_spread = attack.think / 10,
                     .late_one_in = attack.late_one_in,
                     .late = attack.late});
  }
  FlowSimulation simulation(*scheduler,
                            {.parallelism = attack.parallelism, .cost_per_second = kDeviceSpeed},
                            works, seed);
  std::vector<Cost> done_by = {0};  // after each twentieth of a second
  Cost done = 0;
  simulation.on_done = [&](const IoRequest&, Cost cost) { done += cost; };
  for (int i = 0; i < 20 * 60; ++i) {
    simulation.run(50ms);
    done_by.push_back(done);
  }
  Cost worst = UINT64_MAX;
  for (std::size_t i = 20; i < done_by.size(); ++i)
    worst = std::min(worst, done_by[i] - done_by[i - 20]);
  return static_cast<double>(worst) / kDeviceSpeed;
}

// Beside the bound: a hundredth, and one and a half times what is at the server, which is more the
// slower it is. The second of the account begins on a twentieth of a second.
double least_allowed(std::uint64_t size) {
  return 1 - kMaxLoss / 1000.0 - 0.01 - 1.5 * 8 * static_cast<double>(size) / kDeviceSpeed;
}

constexpr Attack kLateNowAndThen = {"1 id that is late now and then", 1, 500us, 8, 50ms, 8, 1};

TEST(SfqLossBound, HoldsInEachSecond) {
  const Attack attacks[] = {
      {"20 ids that pause for 50 ms", 20, 50ms, 0, {}, 1, 1},
      {"20 ids that pause for 50 ms, heavy", 20, 50ms, 0, {}, 100, 1},
      {"20 ids, 4 at once", 20, 50ms, 0, {}, 100, 4},
      {"20 ids that come back soon, and are late now and then", 20, 500us, 8, 50ms, 100, 1},
      {"1 id", 1, 50ms, 0, {}, 100, 1},
      kLateNowAndThen,
  };
  for (const Attack& attack : attacks) {
    for (const std::uint64_t size : {64 * kKiB, 512 * kKiB}) {
      SCOPED_TRACE(::testing::Message() << attack.name << ", " << size / kKiB << " KiB");
      const double worst = worst_second(attack, size, 1);
      std::cout << attack.name << ", " << size / kKiB << " KiB: " << worst << "\n";
      EXPECT_GE(worst, least_allowed(size));
    }
  }
}

// The attack uses up what it may, so a scheduler that loses half as much again would not pass.
TEST(SfqLossBound, IsSoTightThatHalfAsMuchLossAgainBreaksIt) {
  for (const std::uint64_t size : {64 * kKiB, 512 * kKiB}) {
    SCOPED_TRACE(size / kKiB);
    EXPECT_LT(worst_second(kLateNowAndThen, size, 1, kMaxLoss * 3 / 2), least_allowed(size));
  }
}

}  // namespace
}  // namespace vpfs
