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

// All flows in, each of which goes behind the others when it was first.
class Rounds {
 public:
  explicit Rounds(std::uint32_t flows) {
    tournament_.grow(flows);
    for (std::uint32_t flow = 0; flow < flows; ++flow) put_back(flow);
  }
  // Returns the flow that was first.
  std::uint32_t go_on() {
    const std::uint32_t first = tournament_.top();
    put_back(first);
    return first;
  }
  [[nodiscard]] const FlowTournament& tournament() const { return tournament_; }

 private:
  void put_back(std::uint32_t flow) {
    tournament_.put(flow, {.tag = ++order_ * 100 + random_() % 1'000'000, .order = order_});
  }

  FlowTournament tournament_;
  std::uint64_t order_ = 0;
  std::mt19937_64 random_{1};
};

TEST(FlowTournament, OfManyFlowsItTellsEachSomeTurnsBeforeItIsFirst) {
  Rounds rounds(20'000);
  std::map<std::uint32_t, int> told_at;
  int told_early = 0;
  constexpr int kTurns = 10'000;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto told = told_at.find(rounds.tournament().top());
    if (told != told_at.end() && turn - told->second >= 3) ++told_early;
    const std::uint32_t first = rounds.go_on();
    told_at.emplace(rounds.tournament().coming_after(first), turn);
    told_at.erase(first);
  }
  EXPECT_GT(told_early, kTurns * 3 / 4);
}

TEST(FlowTournament, WhereAPartHasNoFlowTheFirstOfAllComes) {
  FlowTournament tournament;
  EXPECT_FALSE(tournament.has_many());
  tournament.grow(20'000);
  EXPECT_TRUE(tournament.has_many());
  tournament.put(19'999, {.tag = 7, .order = 1});
  EXPECT_EQ(tournament.coming_after(0), 19'999U);
}

}  // namespace
}  // namespace vpfs
