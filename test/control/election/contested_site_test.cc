// Whoever believes to lead: the caps that stages enforce never add up to more than the capacity,
// and one coordinator leads all stages once the faults are over.

#include "test/control/election/contested_site.h"

#include <gtest/gtest.h>

namespace vpfs::election {
namespace {

constexpr std::uint64_t kSeeds = 60;

class ContestedSiteTest : public ::testing::TestWithParam<bool> {
 protected:
  // How many of the runs were unsafe.
  [[nodiscard]] std::uint64_t unsafe_without(const SafetyRules& rules) const {
    std::uint64_t unsafe = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      ContestedSite site({.seed = seed, .shows_beats = GetParam(), .rules = rules});
      site.run();
      unsafe += site.caps().is_safe() ? 0 : 1;
    }
    return unsafe;
  }
};

TEST_P(ContestedSiteTest, TheSumIsSafeAndOneLeadsInTheEnd) {
  ContestedSite::Outcome all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ContestedSite site({.seed = seed, .shows_beats = GetParam()});
    site.run();
    ASSERT_TRUE(site.caps().is_safe()) << "seed " << seed;
    EXPECT_TRUE(site.is_led_at_the_end()) << "seed " << seed;
    EXPECT_GT(site.caps().in_force().bytes, 0U) << "seed " << seed;
    all.terms += site.outcome().terms;
    all.early_claims += site.outcome().early_claims;
    all.lost += site.outcome().lost;
    all.applied += site.outcome().applied;
    all.together += site.outcome().together;
  }
  RecordProperty("terms", std::to_string(all.terms));
  // All of it has happened.
  EXPECT_GT(all.terms, 10 * kSeeds);
  EXPECT_GT(all.early_claims, kSeeds);
  EXPECT_GT(all.lost, kSeeds);
  EXPECT_GT(all.together, 0U) << "two led at the same time for a while";
}

TEST_P(ContestedSiteTest, EachRuleIsNeeded) {
  EXPECT_GT(unsafe_without({.leader_stops = false}), 0U);
  EXPECT_GT(unsafe_without({.waits_for_leases = false}), 0U);
  EXPECT_GT(unsafe_without({.compares = false}), 0U);
}

INSTANTIATE_TEST_SUITE_P(Stores, ContestedSiteTest, ::testing::Bool(), [](const auto& shows_beats) {
  return shows_beats.param ? "Beats" : "Leases";
});

}  // namespace
}  // namespace vpfs::election
