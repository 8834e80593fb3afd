#include "control/metrics/shown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct Pfs {
  std::string name;
  std::uint64_t cost = 0;
  std::int64_t last = 0;
  std::uint64_t queued = 0;
};

StatsReply stats_of(std::int64_t at, const std::vector<Pfs>& all) {
  StatsReply stats;
  stats.set_at(at);
  for (const Pfs& each : all) {
    VirtualPfs& made = *stats.add_virtual_pfs();
    made.set_name(each.name);
    made.set_cost_done(each.cost);
    made.set_snapshot_at(each.last);
    made.mutable_queued()->set_requests(each.queued);
  }
  return stats;
}

std::vector<std::string> names(const std::vector<VirtualPfs>& all) {
  std::vector<std::string> found;
  for (const VirtualPfs& each : all) found.push_back(each.name());
  return found;
}

TEST(Shown, ActiveOnesWithTheMostCostAreShownAndTheDefaultAlways) {
  const StatsReply stats = stats_of(10'000, {{"old", 900, 1'000},
                                             {"small", 1, 9'990},
                                             {"waiting", 5, 100, 1},
                                             {"large", 50, 9'800},
                                             {"older", 999, 900},
                                             {"default", 0, 0}});
  EXPECT_THAT(names(choose_shown(stats, 4).each),
              ElementsAre("default", "large", "waiting", "small"));
  EXPECT_THAT(names(choose_shown(stats, 5).each),
              ElementsAre("default", "large", "waiting", "small", "old"))
      << "of those that are idle, the last one";
}

TEST(Shown, OthersAndAllAreSums) {
  StatsReply stats = stats_of(0, {{"a", 3, 0, 1}, {"b", 2, 0, 2}, {"c", 1, 0, 4}});
  stats.mutable_retired()->set_cost_done(100);
  const Shown shown = choose_shown(stats, 1);
  EXPECT_THAT(names(shown.each), ElementsAre("a"));
  EXPECT_EQ(shown.others_count, 2U);
  EXPECT_EQ(shown.others.queued().requests(), 6U);
  EXPECT_EQ(shown.all.cost_done(), 106U);
}

TEST(Shown, SameNameTwiceIsOneRow) {
  const StatsReply stats = stats_of(0, {{"a", 3, 0, 1}, {"a", 4, 0, 2}, {"b", 0, 0, 0}});
  const Shown shown = choose_shown(stats, 10);
  EXPECT_THAT(names(shown.each), UnorderedElementsAre("a", "b"));
  EXPECT_EQ(shown.each[0].cost_done(), 7U);
  EXPECT_EQ(shown.each[0].queued().requests(), 3U);
  EXPECT_EQ(shown.others_count, 0U);
}

TEST(Shown, NameOfTheOthersIsAlwaysTheirs) {
  const StatsReply stats = stats_of(0, {{"(others)", 9, 0, 8}, {"a", 1, 0, 1}});
  const Shown shown = choose_shown(stats, 10);
  EXPECT_THAT(names(shown.each), ElementsAre("a"));
  EXPECT_EQ(shown.others.queued().requests(), 8U);
}

TEST(Shown, RulesWithTheMostHitsAreShownInTheirOrder) {
  StatsReply stats;
  for (const auto& [name, hits] : {std::pair("a", 5), {"b", 1}, {"c", 9}, {"a", 7}}) {
    RuleState& made = *stats.add_rules();
    made.set_name(name);
    made.set_hits(static_cast<std::uint64_t>(hits));
  }
  const auto shown = [&](std::size_t most) {
    std::vector<std::string> found;
    for (const RuleState& each : choose_rules(stats, most)) found.push_back(each.name());
    return found;
  };
  EXPECT_THAT(shown(10), ElementsAre("a", "b", "c"));
  EXPECT_THAT(shown(2), ElementsAre("c", "a"));
}

}  // namespace
}  // namespace vpfs::control
