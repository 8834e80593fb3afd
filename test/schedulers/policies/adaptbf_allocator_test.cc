#include "schedulers/policies/adaptbf_allocator.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/schedulers/policies/adaptbf_reference.h"
#include "test/support/allocation_count.h"

namespace vpfs {

static bool operator==(const AdapTbfAllocator::Allocation& one,
                       const AdapTbfAllocator::Allocation& other) {
  return one.job == other.job && one.tokens == other.tokens && one.record == other.record;
}
static std::ostream& operator<<(std::ostream& out, const AdapTbfAllocator::Allocation& one) {
  return out << "{" << one.job << ", " << one.tokens << ", " << one.record << "}";
}

namespace {

using ::testing::ElementsAre;
using Demand = AdapTbfAllocator::Demand;
using Allocation = AdapTbfAllocator::Allocation;
using Job = AdapTbfAllocator::Job;

std::vector<Allocation> allocate(AdapTbfAllocator& allocator, const std::vector<Demand>& active,
                                 std::uint64_t budget) {
  const auto answer = allocator.allocate(active, budget);
  return {answer.begin(), answer.end()};
}

// One seed: a few jobs that come and go, with small round numbers so that many values are equal. In
// some seeds the jobs that got least in one period are alone in the next, so their remainders sum
// to several tokens.
struct Scenario {
  explicit Scenario(std::uint64_t seed) : random(seed) {
    gathers = seed % 4 == 0;
    jobs = gathers ? draw(6, 14) : draw(2, 8);
    const std::uint64_t most_nodes = gathers ? 1 : draw(1, 4);
    budget = draw(0, 3) == 0 ? draw(0, 12) : draw(10, 60) * draw(1, 20);
    idle_percent = draw(0, 1) * draw(0, 60);
    demand_unit = std::max<std::uint64_t>(1, budget / jobs / draw(1, 4));
    for (std::uint64_t job = 0; job < jobs; ++job) nodes.push_back(draw(1, most_nodes));
  }

  std::uint64_t draw(std::uint64_t least, std::uint64_t most) {
    return least + random() % (most - least + 1);
  }
  std::vector<Demand> next(const std::vector<Allocation>& last) {
    if (gathers) {
      budget = draw(1, 40);
    } else if (draw(0, 9) == 0) {
      budget += draw(0, 2);
    }
    std::vector<Demand> active;
    for (std::uint64_t job = 0; job < jobs; ++job) {
      if (draw(0, 99) < idle_percent) continue;
      const std::uint64_t tokens = draw(0, 3) == 0 ? draw(1, 3) : demand_unit * draw(1, 4);
      active.push_back({static_cast<Job>(job), nodes[job], gathers ? 1000 : tokens});
    }
    if (gathers && last.size() > 4) {
      const std::uint64_t least = std::ranges::min(last, {}, &Allocation::tokens).tokens;
      active.clear();
      for (const Allocation& one : last) {
        if (one.tokens == least) active.push_back({one.job, 1, 1000});
      }
    }
    std::ranges::shuffle(active, random);
    return active;
  }

  std::mt19937_64 random;
  bool gathers;
  std::uint64_t jobs, budget, idle_percent, demand_unit;
  std::vector<std::uint64_t> nodes;
};

TEST(AdapTbfAllocator, AgreesWithAnExactReferenceTokenForTokenAndRecordForRecord) {
  constexpr std::uint64_t kSeeds = 60;
  constexpr int kPeriods = 25;
  AdapTbfReference totals;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Scenario scenario(seed);
    AdapTbfAllocator allocator;
    AdapTbfReference reference;
    std::vector<Allocation> last;
    for (int period = 0; period < kPeriods; ++period) {
      const std::vector<Demand> active = scenario.next(last);
      last = allocate(allocator, active, scenario.budget);
      ASSERT_EQ(last, reference.allocate(active, static_cast<std::int64_t>(scenario.budget)))
          << "seed " << seed << ", period " << period << ", budget " << scenario.budget;
    }
    totals.tokens_added += reference.tokens_added;
    totals.tokens_taken += reference.tokens_taken;
    totals.several_taken += reference.several_taken;
    totals.ties += reference.ties;
    totals.kept_at_zero += reference.kept_at_zero;
    totals.paid_back += reference.paid_back;
  }
  std::cout << "seeds 1 to " << kSeeds << ", " << kPeriods << " periods each; single tokens added "
            << totals.tokens_added << ", taken " << totals.tokens_taken << " (several at once "
            << totals.several_taken << " times), equal remainders " << totals.ties
            << ", kept at zero " << totals.kept_at_zero << ", paid back " << totals.paid_back
            << "\n";
  EXPECT_GT(totals.tokens_added, 1000U) << "what never happens proves nothing";
  EXPECT_GT(totals.tokens_taken, 50U);
  EXPECT_GT(totals.several_taken, 5U);
  EXPECT_GT(totals.ties, 1000U);
  EXPECT_GT(totals.kept_at_zero, 10U);
  EXPECT_GT(totals.paid_back, 1000U);
}

TEST(AdapTbfAllocator, GivesTheSameInPartsAsAtOnce) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario scenario(seed);
    AdapTbfAllocator at_once;
    AdapTbfAllocator in_parts;
    std::vector<Allocation> last;
    for (int period = 0; period < 25; ++period) {
      const std::vector<Demand> active = scenario.next(last);
      last = allocate(at_once, active, scenario.budget);
      in_parts.start(active, scenario.budget);
      while (!in_parts.go_on(scenario.draw(0, 5))) {
      }
      const auto parts = in_parts.allocations();
      ASSERT_EQ(last, std::vector<Allocation>(parts.begin(), parts.end())) << "seed " << seed;
    }
  }
}

TEST(AdapTbfAllocator, AgreesWithTheReferenceOnNumbersUpToTheLargest) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&] { return 1 + random() % (AdapTbfAllocator::kMost >> random() % 41); };
    AdapTbfAllocator allocator;
    AdapTbfReference reference;
    for (int period = 0; period < 5; ++period) {
      std::vector<Demand> active(4);
      for (Job job = 0; job < 4; ++job) active[job] = {job, draw(), draw()};
      const std::uint64_t budget = draw();
      ASSERT_EQ(allocate(allocator, active, budget),
                reference.allocate(active, static_cast<std::int64_t>(budget)))
          << "seed " << seed << ", period " << period;
    }
  }
}

TEST(AdapTbfAllocator, DividesTheFirstPeriodByNodes) {
  AdapTbfAllocator allocator;
  // a = 100 * 1/4 and 100 * 3/4; neither has a surplus.
  EXPECT_THAT(allocate(allocator, {{7, 1, 900}, {2, 3, 900}}, 100),
              ElementsAre(Allocation{7, 25, 0}, Allocation{2, 75, 0}));
}

TEST(AdapTbfAllocator, ThreeEqualJobsTakeTurnsWithTheOddTokenForever) {
  AdapTbfAllocator allocator;
  // Each is due 33 1/3 and carries the rest: exact thirds, so every turn is a tie.
  for (Job period = 0; period < 30'000; ++period) {
    const auto answer = allocate(allocator, {{0, 5, 900}, {1, 5, 900}, {2, 5, 900}}, 100);
    for (Job job = 0; job < 3; ++job) {
      ASSERT_EQ(answer[job].tokens, period % 3 == job ? 34U : 33U) << "period " << period;
    }
  }
}

// Two jobs with equal nodes, a = 50 each; the first needs 20: s = 30. u = 20/50 and 200/50, so
// DF = 0.4 * 0.5 = 0.2 and 4 + 4 * 0.5 = 6. a_RD = 20 + 30 * 0.2/6.2 = 20.97 and 50 + 29.03.
// Floors 20 and 79; the token left goes to the larger remainder, which is then -0.03.
void lend_29(AdapTbfAllocator& allocator) {
  EXPECT_THAT(allocate(allocator, {{0, 1, 20}, {1, 1, 200}}, 100),
              ElementsAre(Allocation{0, 21, 29}, Allocation{1, 79, -29}));
}

TEST(AdapTbfAllocator, ALenderThatNeedsItsTokensAgainGetsAllOfThemBack) {
  AdapTbfAllocator allocator;
  lend_29(allocator);
  // No surplus, a_RD = 50 each. u = 100/21 for the lender and ubar = 2, so
  // C = 0.5 * (100/21 + 0) / 2 = 1.19, take = min(29, 59, 50) = 29.
  EXPECT_THAT(allocate(allocator, {{0, 1, 100}, {1, 1, 100}}, 100),
              ElementsAre(Allocation{0, 79, 0}, Allocation{1, 21, 0}));
}

TEST(AdapTbfAllocator, ALenderThatNeedsLittleLendsMoreAndGetsAPartBack) {
  AdapTbfAllocator allocator;
  lend_29(allocator);
  // a = 50 each, s = 30. u = 20/21 and 100/79, DF = 0.476 and 1.266 * 1.5 = 1.899.
  // a_RD = 20 + 30 * 0.476/2.375 = 26.02 and 73.98; with the remainders -0.03 and 0.03: 26 and 74.
  // r_RD = 53 and -53. ubar = 20/26, C = 0.5 * (1 + 6/26) / 2 = 0.3077,
  // take = min(29, floor(22.77), 74) = 22.
  EXPECT_THAT(allocate(allocator, {{0, 1, 20}, {1, 1, 100}}, 100),
              ElementsAre(Allocation{0, 48, 31}, Allocation{1, 52, -31}));
}

TEST(AdapTbfAllocator, AnIdlePeriodKeepsTheRecordButForgetsTheTokensOfThePeriodBefore) {
  AdapTbfAllocator allocator;
  lend_29(allocator);
  EXPECT_THAT(allocate(allocator, {}, 100), ElementsAre());
  EXPECT_EQ(allocator.record(0), 29);
  // Now u = d / a = 2: C = 0.5 * 2 / 2 = 0.5, take = min(29, 25, 50).
  EXPECT_THAT(allocate(allocator, {{0, 1, 100}, {1, 1, 100}}, 100),
              ElementsAre(Allocation{0, 75, 4}, Allocation{1, 25, -4}));
}

TEST(AdapTbfAllocator, ALenderAloneTakesNothingAndADebtorAlonePaysNothing) {
  AdapTbfAllocator allocator;
  lend_29(allocator);
  EXPECT_THAT(allocate(allocator, {{1, 1, 300}}, 100), ElementsAre(Allocation{1, 100, -29}));
  EXPECT_THAT(allocate(allocator, {{0, 1, 300}}, 100), ElementsAre(Allocation{0, 100, 29}));
}

TEST(AdapTbfAllocator, JobsThatGetZeroTokensAreServedInTurn) {
  AdapTbfAllocator allocator;
  // Each is due half a token. The job without a token so far has a = 0 and a_prev = 0, so its u is
  // d.
  for (std::uint64_t period = 0; period < 100; ++period) {
    const std::uint64_t first = period % 2 == 0 ? 1 : 0;
    EXPECT_THAT(allocate(allocator, {{0, 1, 1}, {1, 1, 1}}, 1),
                ElementsAre(Allocation{0, first, 0}, Allocation{1, 1 - first, 0}));
  }
  EXPECT_THAT(allocate(allocator, {{0, 1, 1}, {1, 1, 1}}, 0),
              ElementsAre(Allocation{0, 0, 0}, Allocation{1, 0, 0}));
}

TEST(AdapTbfAllocator, AnEndedJobsRecordIsSettledInProportionAmongTheOtherSide) {
  AdapTbfAllocator allocator;
  // a = 20 each, s = 15 and 11, nearly all of which goes to the other two, half each.
  EXPECT_THAT(allocate(allocator, {{0, 1, 5}, {1, 1, 9}, {2, 1, 1000}, {3, 1, 1000}}, 80),
              ElementsAre(Allocation{0, 5, 15}, Allocation{1, 9, 11}, Allocation{2, 33, -13},
                          Allocation{3, 33, -13}));
  allocator.end(0);  // 7.5 off each debt: the odd token off the smaller job's
  EXPECT_EQ(allocator.record(0), 0);
  EXPECT_EQ(allocator.record(1), 11);
  EXPECT_EQ(allocator.record(2), -5);
  EXPECT_EQ(allocator.record(3), -6);
  allocator.end(3);  // a debtor: off the only claim
  EXPECT_EQ(allocator.record(1), 5);
  EXPECT_EQ(allocator.record(2), -5);
  allocator.end(1);
  EXPECT_EQ(allocator.record(2), 0);
  allocator.end(1);
  allocator.end(1000);
  EXPECT_EQ(allocator.record(1000), 0);
}

TEST(AdapTbfAllocator, WhenAllJobsHaveEndedNothingIsLeftOfThem) {
  AdapTbfAllocator used;
  Scenario before(1);
  for (int period = 0; period < 50; ++period) {
    (void)used.allocate(before.next({}), before.budget);
  }
  for (Job job = 0; job < before.jobs; ++job) used.end(job);
  AdapTbfAllocator fresh;
  Scenario scenario(2);
  for (int period = 0; period < 50; ++period) {
    const std::vector<Demand> active = scenario.next({});
    ASSERT_EQ(allocate(used, active, scenario.budget), allocate(fresh, active, scenario.budget));
  }
}

// The invariants after every period, whatever the numbers.
struct Totals {
  Totals(const AdapTbfAllocator& allocator, Job jobs, std::span<const Allocation> answer) {
    for (const Allocation& one : answer) {
      tokens += one.tokens;
      same &= one.record == allocator.record(one.job);
    }
    for (Job job = 0; job < jobs; ++job) records += allocator.record(job);
  }
  std::uint64_t tokens = 0;
  std::int64_t records = 0;
  bool same = true;
};

TEST(AdapTbfAllocator, ConservesTokensAndRecordsWhateverHappensInWhateverOrder) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto jobs = static_cast<Job>(2 + random() % 299);
    const std::uint64_t unit = std::uint64_t{1} << random() % 20;
    AdapTbfAllocator allocator;
    AdapTbfAllocator permuted;
    for (int period = 0; period < 100; ++period) {
      const std::uint64_t active_percent = random() % 101;
      const std::uint64_t budget = random() % (unit * jobs);
      std::vector<Demand> active;
      for (Job job = 0; job < jobs; ++job) {
        if (random() % 100 >= active_percent) continue;
        active.push_back({job, 1 + random() % 64, 1 + random() % (2 * unit)});
      }
      std::vector<Allocation> answer = allocate(allocator, active, budget);
      const Totals totals(allocator, jobs, answer);
      ASSERT_EQ(totals.tokens, active.empty() ? 0 : budget) << "seed " << seed;
      ASSERT_EQ(totals.records, 0) << "seed " << seed;
      ASSERT_TRUE(totals.same);
      for (std::size_t i = 0; i < active.size(); ++i) {
        ASSERT_EQ(answer[i].job, active[i].job);
        ASSERT_LE(answer[i].tokens, budget);
      }

      std::ranges::shuffle(active, random);
      std::vector<Allocation> other = allocate(permuted, active, budget);
      std::ranges::sort(other, {}, &Allocation::job);
      ASSERT_EQ(answer, other) << "seed " << seed;
      if (random() % 4 != 0) continue;
      const auto ended = static_cast<Job>(random() % jobs);
      allocator.end(ended);
      permuted.end(ended);
      ASSERT_EQ(Totals(allocator, jobs, {}).records, 0) << "seed " << seed;
    }
  }
}

TEST(AdapTbfAllocator, ExtremeNumbersOverflowNothing) {
  constexpr std::uint64_t kMost = AdapTbfAllocator::kMost;
  const auto extreme = [](std::mt19937_64& random) { return random() % 2 == 0 ? kMost : 1; };
  for (const Job jobs : {1U, 2U, 3U, 300U, 100'000U}) {
    std::mt19937_64 random(jobs);
    AdapTbfAllocator allocator;
    for (int period = 0; period < 12; ++period) {
      std::vector<Demand> active;
      for (Job job = 0; job < jobs; ++job) {
        if (random() % 8 == 0) continue;
        active.push_back({job, extreme(random), extreme(random)});
      }
      const std::uint64_t budget = period % 4 == 3 ? 1 : kMost;
      const Totals totals(allocator, jobs, allocator.allocate(active, budget));
      ASSERT_EQ(totals.tokens, active.empty() ? 0 : budget) << jobs << " jobs";
      ASSERT_EQ(totals.records, 0) << jobs << " jobs";
    }
    for (Job job = 0; job < std::min(jobs, 100U); ++job) allocator.end(job);
    EXPECT_EQ(Totals(allocator, jobs, {}).records, 0) << jobs << " jobs";
  }
}

TEST(AdapTbfAllocator, NumbersOutOfRangeCountAsTheNearestWithin) {
  constexpr std::uint64_t kMost = AdapTbfAllocator::kMost;
  AdapTbfAllocator beyond;
  AdapTbfAllocator within;
  for (int period = 0; period < 3; ++period) {
    EXPECT_EQ(allocate(beyond, {{0, ~0ULL, 0}, {1, 0, ~0ULL}}, ~0ULL),
              allocate(within, {{0, kMost, 1}, {1, 1, kMost}}, kMost));
  }
}

TEST(AdapTbfAllocator, AllocatesNoMemoryAfterTheLargestPeriod) {
  AdapTbfAllocator allocator;
  std::mt19937_64 random(1);
  std::vector<Demand> all(300);
  for (Job job = 0; job < all.size(); ++job) all[job] = {job, 1 + job % 7, 1};
  (void)allocator.allocate(all, 30'000);
  for (int period = 0; period < 200; ++period) {
    for (Demand& demand : all) demand.tokens = 1 + random() % 300;
    std::ranges::shuffle(all, random);
    const std::span active = std::span(all).first(random() % (all.size() + 1));
    const std::uint64_t before = allocation_count();
    (void)allocator.allocate(active, 30'000);
    ASSERT_EQ(allocation_count(), before) << "period " << period;
  }
}

}  // namespace
}  // namespace vpfs
