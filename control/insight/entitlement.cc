#include "control/insight/entitlement.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/wide.h"
#include "control/allocation/max_min.h"

namespace vpfs::insight {
namespace {

using allocation::kMostAmount;
using allocation::kUnbounded;
using stage::Measure;
using stage::Measures;

// So much of a rate, in that time.
std::uint64_t amount_of(std::uint64_t rate, Duration time) {
  return static_cast<std::uint64_t>(Wide{rate} * static_cast<std::uint64_t>(time.count()) /
                                    kNanosecondsPerSecond);
}

// Bytes as cost, by what both were.
Cost cost_of(std::uint64_t bytes, const Measures& sums) {
  const std::uint64_t moved = sums.of(Measure::read_bytes) + sums.of(Measure::written_bytes);
  const Cost cost = sums.of(Measure::cost);
  if (moved == 0 || cost == 0) return std::min(bytes, kMostAmount);
  return static_cast<Cost>(std::min<Wide>(Wide{bytes} * cost / moved, kMostAmount));
}

Cost sum_of(Cost one, Cost other) {
  return one > kMostAmount - std::min(other, kMostAmount) ? kMostAmount : one + other;
}

}  // namespace

Wish wish_of(const Measures& sums, const Share& share, Duration length) {
  const Duration others = sums.time(Measure::held_by_share) +
                          sums.time(Measure::held_by_kept_slot) +
                          sums.time(Measure::held_by_depth) + sums.time(Measure::held_by_class);
  const Duration limited = sums.time(Measure::held_by_limit);
  const Cost sent = sums.of(Measure::cost);
  Cost demand = sent + cost_of(sums.of(Measure::queued), sums);
  if (limited >= length / 2) {
    demand = sent;  // more was not allowed, whose ever the limit was
  } else if (others >= length / 2) {
    demand = kUnbounded;
  }
  if (share.rate.count > 0) {
    demand = std::min(demand, std::max(sent, cost_of(amount_of(share.rate.count, length), sums)));
  }
  if (demand != kUnbounded) demand = std::min(demand, kMostAmount);
  return {.weight = std::max<std::uint64_t>(share.weight, 1),
          .demand = demand,
          .least = cost_of(amount_of(share.min.count, length), sums)};
}

// In each round those that had more elsewhere than their part of all get nothing here, those that
// would get less than their promise get that, and the others share the rest. It ends, since a round
// in which none leaves is the last.
void entitle(Cost amount, std::span<const Wish> wishes, std::span<Cost> got) {
  allocation::MaxMin max_min;
  std::vector<std::size_t> sharing(wishes.size());
  for (std::size_t i = 0; i < sharing.size(); ++i) sharing[i] = i;
  std::vector<allocation::Claim> claims;
  std::vector<std::uint64_t> parts;
  bool have_left = true;
  while (have_left) {
    claims.clear();
    Cost all = amount;
    for (const std::size_t i : sharing) {
      const Wish& wish = wishes[i];
      const bool wants_all = wish.demand == kUnbounded;
      claims.push_back({.weight = wish.weight,
                        .demand = wants_all ? kUnbounded : sum_of(wish.demand, wish.elsewhere)});
      all = sum_of(all, wish.elsewhere);
    }
    parts.assign(claims.size(), 0);
    (void)max_min.fill(all, claims, parts);
    std::vector<std::size_t> others;
    for (std::size_t at = 0; at < sharing.size(); ++at) {
      const std::size_t i = sharing[at];
      const Wish& wish = wishes[i];
      const Cost promised = std::min(wish.least, wish.demand);
      got[i] = parts[at] - std::min(parts[at], wish.elsewhere);
      if (parts[at] >= wish.elsewhere && got[i] >= promised) {
        others.push_back(i);
        continue;
      }
      got[i] = std::min(promised, amount);
      amount -= got[i];
    }
    have_left = others.size() < sharing.size();
    sharing = std::move(others);
  }
}

}  // namespace vpfs::insight
