// Whoever believes to lead: the caps that stages enforce never add up to more than the capacity,
// and one coordinator leads all stages once the faults are over.

#include "test/control/election/contested_site.h"

#include <gtest/gtest.h>

namespace vpfs::election {
namespace {

constexpr std::uint64_t kSeeds = 200;

class ContestedSiteTest : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] bool is_safe_without(const SafetyRules& rules) const {
    for (std::uint64_t seed = 1; seed <= 2 * kSeeds; ++seed) {
      ContestedSite site({.seed = seed, .shows_beats = GetParam(), .rules = rules});
      site.run();
      if (!site.caps().is_safe()) return false;
    }
    return true;
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
  EXPECT_FALSE(is_safe_without({.leader_stops = false}));
  EXPECT_FALSE(is_safe_without({.waits_for_leases = false}));
  EXPECT_FALSE(is_safe_without({.compares = false}));
  EXPECT_FALSE(is_safe_without({.resigns_late = false}));
}

INSTANTIATE_TEST_SUITE_P(Stores, ContestedSiteTest, ::testing::Bool(), [](const auto& shows_beats) {
  return shows_beats.param ? "Beats" : "Leases";
});

}  // namespace
}  // namespace vpfs::election
