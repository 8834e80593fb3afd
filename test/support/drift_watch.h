#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/wide.h"
#include "schedulers/request.h"

namespace vpfs {

// Measures how far the cost done for two parties (flows, or traffic classes) drifts from their
// weights: for every pair, and over every interval in which both are backlogged.
class DriftWatch {
 public:
  explicit DriftWatch(const std::vector<std::uint32_t>& weights)
      : pairs_(weights.size() * weights.size()) {
    for (const std::uint32_t weight : weights) parties_.push_back({.weight = weight});
  }

  // A request of the party with this cost has arrived.
  void charged(std::size_t party, Cost cost) {
    parties_[party].largest = std::max(parties_[party].largest, cost);
  }
  void backlog(std::size_t party, bool backlogged) {
    parties_[party].backlogged = backlogged;
    for (std::size_t other = 0; other < parties_.size(); ++other) {
      if (other == party) continue;
      Pair& both = pair(party, other);
      both.watched = backlogged && parties_[other].backlogged;
      both.least = both.most = difference(party, other);
    }
  }
  void done(std::size_t party, Cost cost) {
    parties_[party].done += cost;
    for (std::size_t other = 0; other < parties_.size(); ++other) {
      if (other == party || !pair(party, other).watched) continue;
      Pair& both = pair(party, other);
      const SignedWide drift = difference(party, other);
      both.least = std::min(both.least, drift);
      both.most = std::max(both.most, drift);
      both.worst = std::max(both.worst, both.most - both.least);
      const Party& one = parties_[party];
      const Party& two = parties_[other];
      const SignedWide unit =
          SignedWide{one.largest} * two.weight + SignedWide{two.largest} * one.weight;
      worst_ =
          std::max(worst_, static_cast<double>(both.most - both.least) / static_cast<double>(unit));
    }
  }

  // The largest |W_f/w_f - W_g/w_g| / (c_f/w_f + c_g/w_g) (c: largest cost charged so far). Theory:
  // at most D + 1 [SFQD].
  [[nodiscard]] double worst() const { return worst_; }
  // The largest |W_f/w_f - W_g/w_g| of two parties.
  [[nodiscard]] double worst(std::size_t f, std::size_t g) const {
    const Pair& both = pairs_[std::min(f, g) * parties_.size() + std::max(f, g)];
    return static_cast<double>(both.worst) / parties_[f].weight / parties_[g].weight;
  }

 private:
  struct Party {
    std::uint32_t weight = 1;
    Cost done = 0;
    Cost largest = 0;
    bool backlogged = false;
  };
  struct Pair {
    bool watched = false;
    SignedWide least = 0;
    SignedWide most = 0;
    SignedWide worst = 0;  // most - least, over all intervals
  };

  Pair& pair(std::size_t f, std::size_t g) {
    return pairs_[std::min(f, g) * parties_.size() + std::max(f, g)];
  }
  // W_f w_g - W_g w_f for f < g
  [[nodiscard]] SignedWide difference(std::size_t one, std::size_t other) const {
    const Party& f = parties_[std::min(one, other)];
    const Party& g = parties_[std::max(one, other)];
    return SignedWide{f.done} * g.weight - SignedWide{g.done} * f.weight;
  }

  std::vector<Party> parties_;
  std::vector<Pair> pairs_;
  double worst_ = 0;
};

}  // namespace vpfs
