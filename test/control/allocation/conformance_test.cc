// The rules for every allocation policy of the registry, whatever it decides.
#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "control/allocation/policy.h"
#include "test/control/allocation/pairs.h"

namespace vpfs::allocation {
namespace {

using test::Cycles;
using test::Did;

constexpr Amounts kCapacity = {
    .bytes = 1'000'000'000, .operations = 50'000, .metadata_operations = 20'000};

PolicySettings settings() {
  return {.capacity = kCapacity, .floor = {}, .limits = {{"job1", {.bytes = 500}}}};
}

// Jobs and stages that come and go.
class Site {
 public:
  explicit Site(std::uint64_t seed) : random_(seed) {}

  std::vector<Did> cycle() {
    std::vector<Did> rows;
    for (std::size_t job = 0; job < kJobs; ++job) {
      for (std::size_t stage = 0; stage < kStages; ++stage) {
        done_[job][stage] += random_() % 1'000'000;
        if (random_() % 3 == 0) continue;
        Did& row = rows.emplace_back(
            Did{.job = "job" + std::to_string(job), .stage = "s" + std::to_string(stage)});
        row.pair = {.weight = static_cast<std::uint32_t>(1 + job),
                    .arrived = {.bytes = random_() % kCapacity.bytes, .operations = random_() % 99},
                    .limited = std::chrono::milliseconds(random_() % 300),
                    .done = done_[job][stage]};
        if (job % 4 == 0) row.pair.most.bytes = 1'000'000 * (1 + job);
      }
    }
    return rows;
  }

 private:
  static constexpr std::size_t kJobs = 9;
  static constexpr std::size_t kStages = 7;

  std::mt19937_64 random_;
  std::array<std::array<Cost, kStages>, kJobs> done_ = {};
};

class AllocationConformance : public ::testing::TestWithParam<const PolicyKind*> {
 protected:
  std::unique_ptr<Policy> policy_ = GetParam()->make(settings());
  Cycles cycles_{*policy_};
};

TEST_P(AllocationConformance, HasANameByWhichItIsFound) {
  EXPECT_EQ(find_policy(GetParam()->name), GetParam());
  EXPECT_EQ(find_policy("no such policy"), nullptr);
  EXPECT_FALSE(GetParam()->what.empty());
}

TEST_P(AllocationConformance, GrantsOnlyWhatItSaysThatStagesMustBeAbleTo) {
  Site site(1);
  for (int cycle = 0; cycle < 50; ++cycle) {
    for (const auto& [pair, grant] : cycles_.next(site.cycle()).value()) {
      EXPECT_FALSE(grant.elsewhere_total && !GetParam()->needs_elsewhere);
      const bool has_cap = grant.bytes || grant.operations || grant.metadata_operations;
      EXPECT_FALSE(has_cap && !GetParam()->needs_caps);
    }
  }
}

TEST_P(AllocationConformance, NumbersOfPairsDoNotMatter) {
  Site site(2);
  const auto other = GetParam()->make(settings());
  Cycles others(*other);
  // So its pairs have other numbers.
  (void)others.next({{.job = "zz", .stage = "z"}, {.job = "zz", .stage = "y"}});
  for (int cycle = 0; cycle < 50; ++cycle) {
    const std::vector<Did> rows = site.cycle();
    EXPECT_EQ(cycles_.next(rows).value(), others.next(rows).value());
  }
}

TEST_P(AllocationConformance, ElsewhereTotalsOfAPairOnlyGrowWhileItIsThere) {
  Site site(3);
  Cycles::Grants before;
  for (int cycle = 0; cycle < 200; ++cycle) {
    Cycles::Grants now = cycles_.next(site.cycle()).value();
    for (const auto& [pair, grant] : now) {
      const auto last = before.find(pair);
      if (last != before.end()) EXPECT_GE(grant.elsewhere_total, last->second.elsewhere_total);
    }
    before = std::move(now);
  }
}

TEST_P(AllocationConformance, ASiteWithoutJobsIsNoError) {
  EXPECT_TRUE(cycles_.next({}));
  Site site(4);
  EXPECT_TRUE(cycles_.next(site.cycle()));
  EXPECT_TRUE(cycles_.next({}));
}

INSTANTIATE_TEST_SUITE_P(Policies, AllocationConformance, ::testing::ValuesIn(policies()),
                         [](const auto& kind) { return std::string(kind.param->name); });

}  // namespace
}  // namespace vpfs::allocation
