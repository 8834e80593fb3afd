#include "control/insight/entitlement.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "control/allocation/max_min.h"

namespace vpfs::insight {

// Each round gives those their promise that would get less, and shares the rest among the others.
// It ends, since a round without such a one is the last.
void entitle(Cost amount, std::span<const Wish> wishes, std::span<Cost> got) {
  allocation::MaxMin max_min;
  std::vector<std::size_t> sharing(wishes.size());
  for (std::size_t i = 0; i < sharing.size(); ++i) sharing[i] = i;
  std::vector<allocation::Claim> claims;
  std::vector<std::uint64_t> parts;
  bool has_promised = true;
  while (has_promised) {
    claims.clear();
    for (const std::size_t i : sharing) {
      claims.push_back({.weight = wishes[i].weight, .demand = wishes[i].demand});
    }
    parts.assign(claims.size(), 0);
    (void)max_min.fill(amount, claims, parts);
    std::vector<std::size_t> others;
    for (std::size_t at = 0; at < sharing.size(); ++at) {
      const std::size_t i = sharing[at];
      const Cost promised = std::min(wishes[i].least, wishes[i].demand);
      got[i] = parts[at];
      if (parts[at] >= promised) {
        others.push_back(i);
        continue;
      }
      got[i] = std::min(promised, amount);
      amount -= got[i];
    }
    has_promised = others.size() < sharing.size();
    sharing = std::move(others);
  }
}

}  // namespace vpfs::insight
