#include "schedulers/flow_tournament.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

bool before(const FlowTournament::Key& a, const FlowTournament::Key& b) {
  return a.tag != b.tag ? a.tag < b.tag : a.order < b.order;
}

// Every operation against an ordinary map, from random states.
TEST(FlowTournament, TopIsAlwaysTheSmallestKey) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint32_t kFlows = 60;
    FlowTournament tournament;
    std::map<std::uint32_t, FlowTournament::Key> model;
    std::uint64_t order = UINT32_MAX - 300;  // leaves 32 bits on the way
    for (int step = 0; step < 600; ++step) {
      const auto flow = static_cast<std::uint32_t>(random() % kFlows);
      const FlowTournament::Key key = {.tag = 1000 + random() % 40, .order = order++};
      tournament.grow(std::min<std::uint32_t>(kFlows, flow + 1));
      if (random() % 3 != 0) {
        tournament.put(flow, key);
        model[flow] = key;
      } else {
        tournament.erase(flow);
        model.erase(flow);
      }
      ASSERT_EQ(tournament.empty(), model.empty());
      if (model.empty()) continue;
      const auto least = std::ranges::min_element(
          model, [](const auto& a, const auto& b) { return before(a.second, b.second); });
      ASSERT_EQ(tournament.top(), least->first) << "seed " << seed << " step " << step;
      ASSERT_EQ(tournament.top_tag(), least->second.tag);
      ASSERT_EQ(tournament.contains(flow), model.contains(flow));
    }
    tournament.subtract(1000);
    for (; !model.empty(); model.erase(tournament.top()), tournament.erase(tournament.top())) {
      const auto least = std::ranges::min_element(
          model, [](const auto& a, const auto& b) { return before(a.second, b.second); });
      ASSERT_EQ(tournament.top(), least->first) << "seed " << seed << " draining";
    }
    EXPECT_TRUE(tournament.empty());
  }
}

}  // namespace
}  // namespace vpfs
