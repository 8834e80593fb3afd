// The rules for every allocation policy, whatever it decides: those of the registry, and that of an
// aggregator.
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/allocation/allocation_policy.h"
#include "control/allocation/given.h"
#include "test/control/allocation/pairs.h"

namespace vpfs::allocation {
namespace {

using test::Cycles;
using test::Did;

constexpr Amounts kCapacity = {
    .bytes = 1'000'000'000, .operations = 50'000, .metadata_operations = 20'000};

AllocationPolicySettings settings() {
  return {.capacity = kCapacity,
          .floor = {},
          .limits = {{"job1", {.bytes = 500, .metadata_operations = 50}}}};
}

std::unique_ptr<AllocationPolicy> make_given(const AllocationPolicySettings& settings) {
  auto policy = std::make_unique<GivenPolicy>(settings.floor);
  policy->begin_parent();
  for (std::uint64_t job = 0; job < 9; job += 2) {
    policy->give("job" + std::to_string(job), {.bytes = job * 1000,
                                               .operations = 7,
                                               .metadata_operations = 1000,
                                               .elsewhere_total = 100});
  }
  policy->give("job1", {.bytes = 5000});
  return policy;
}

constexpr AllocationPolicyKind kGiven = {.name = "given",
                                         .what = "what a parent granted",
                                         .needs_caps = true,
                                         .needs_elsewhere = true,
                                         .make = make_given};

std::vector<const AllocationPolicyKind*> all() {
  std::vector<const AllocationPolicyKind*> kinds(policies().begin(), policies().end());
  kinds.push_back(&kGiven);
  return kinds;
}

// Jobs and stages that come and go.
class RandomSite {
 public:
  explicit RandomSite(std::uint64_t seed) : random_(seed) {}

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

class AllocationConformance : public ::testing::TestWithParam<const AllocationPolicyKind*> {
 protected:
  std::unique_ptr<AllocationPolicy> policy_ = GetParam()->make(settings());
  Cycles cycles_{*policy_};
};

TEST_P(AllocationConformance, HasANameByWhichItIsFound) {
  EXPECT_EQ(find_policy(GetParam()->name), GetParam() == &kGiven ? nullptr : GetParam());
  EXPECT_EQ(find_policy("no such policy"), nullptr);
  EXPECT_FALSE(GetParam()->what.empty());
}

TEST_P(AllocationConformance, GrantsOnlyWhatItSaysThatStagesMustBeAbleTo) {
  RandomSite site(1);
  for (int cycle = 0; cycle < 50; ++cycle) {
    const std::vector<Did> rows = site.cycle();
    const Cycles::Grants grants = cycles_.next(rows).value();
    for (const Did& row : rows) {
      const Grant& grant = grants.at({row.job, row.stage});
      EXPECT_FALSE(grant.elsewhere_total && !GetParam()->needs_elsewhere);
      // Bounds of jobs are caps in any case.
      const bool has_cap = (grant.bytes && row.pair.most.bytes == 0) || grant.operations ||
                           grant.metadata_operations;
      EXPECT_FALSE(has_cap && !GetParam()->needs_caps);
    }
  }
}

TEST_P(AllocationConformance, NumbersOfPairsDoNotMatter) {
  RandomSite site(2);
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
  RandomSite site(3);
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

TEST_P(AllocationConformance, AJobHasTheSameWhicheverOfItsStagesIsAnAggregator) {
  const auto sum = [this](std::uint32_t stages) {
    Cycles cycles(*policy_);
    std::uint64_t bytes = 0;
    for (const auto& [pair, grant] :
         cycles
             .next({{.job = "job1", .stage = "s1", .pair = {.stages = stages}},
                    {.job = "job1", .stage = "s2", .pair = {.stages = 3 - stages}}})
             .value()) {
      bytes += grant.bytes.value_or(0);
    }
    return bytes;
  };
  EXPECT_EQ(sum(1), sum(2));
}

// Some stages do not limit metadata operations: the others get what they would get without these.
TEST_P(AllocationConformance, OnlyStagesThatLimitMetadataOperationsHaveAPartOfThem) {
  RandomSite site(5);
  const auto other = GetParam()->make(settings());
  Cycles others(*other);
  std::uint64_t granted = 0;
  for (int cycle = 0; cycle < 50; ++cycle) {
    std::vector<Did> rows = site.cycle();
    std::vector<Did> parts;
    for (Did& row : rows) {
      row.pair.takes_metadata_caps = row.stage > "s2";
      row.pair.arrived.metadata_operations = row.pair.arrived.operations;
      if (row.pair.most.bytes > 0) row.pair.most.metadata_operations = 10'000;
      if (row.pair.takes_metadata_caps) parts.push_back(row);
    }
    const Cycles::Grants all = cycles_.next(rows).value();
    const Cycles::Grants expected = others.next(parts).value();
    for (const auto& [pair, grant] : all) {
      const auto place = expected.find(pair);
      const auto metadata =
          place == expected.end() ? std::nullopt : place->second.metadata_operations;
      EXPECT_EQ(grant.metadata_operations, metadata) << pair.first << " on " << pair.second;
      granted += grant.metadata_operations.value_or(0);
    }
  }
  EXPECT_GT(granted, 0U);
}

TEST_P(AllocationConformance, ASiteWithoutJobsIsNotAnError) {
  EXPECT_TRUE(cycles_.next({}));
  RandomSite site(4);
  EXPECT_TRUE(cycles_.next(site.cycle()));
  EXPECT_TRUE(cycles_.next({}));
}

INSTANTIATE_TEST_SUITE_P(Policies, AllocationConformance, ::testing::ValuesIn(all()),
                         [](const auto& kind) { return std::string(kind.param->name); });

}  // namespace
}  // namespace vpfs::allocation
