#include "control/allocation/given.h"

#include <algorithm>
#include <utility>

#include "control/allocation/cap_ledger.h"

namespace vpfs::allocation {

void GivenPolicy::begin_parent() {
  ++cycle_;
  std::erase_if(given_, [this](const auto& each) { return each.second.cycle + 1 < cycle_; });
  mentions_any_ = false;
  for (Divided& each : resources_) {
    each.has_caps = false;
    each.is_of_all = true;
  }
}

void GivenPolicy::give(std::string_view job, const Grant& grant) {
  auto found = given_.find(job);
  if (found == given_.end()) found = given_.emplace(job, Given{}).first;
  Given& given = found->second;
  given.cycle = cycle_;
  given.grant = grant;
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    const bool has_cap = (grant.*kResources[i].grant).has_value();
    resources_[i].has_caps |= has_cap;
    resources_[i].is_of_all &= has_cap;
  }
  if (!std::exchange(mentions_any_, true)) has_totals_ = false;
  if (!grant.elsewhere_total) return;
  has_totals_ = true;
  const Cost total = *grant.elsewhere_total;
  if (std::exchange(given.base, base_) != base_) {
    given.total = total;
  } else if (total > given.total) {
    given.more = add_saturating(given.more, total - std::exchange(given.total, total));
  }
}

void GivenPolicy::forget_totals() {
  ++base_;
}

void GivenPolicy::end_parent() {
  forget_totals();
  given_.clear();
  for (Divided& each : resources_) each.has_caps = false;
}

Result<void> GivenPolicy::allocate(std::span<const Pair> pairs, Duration period,
                                   const Amounts& /*less*/, std::span<const std::string_view> jobs,
                                   std::span<Grant> grants) {
  for (Divided& each : resources_) each.divider.begin(period);
  siblings_.begin();
  for_each_job(pairs, [&](std::size_t first, std::size_t count) {
    const std::span<const Pair> of_job = pairs.subspan(first, count);
    const std::span<Grant> granted = grants.subspan(first, count);
    const auto found = given_.find(jobs[pairs[first].job]);
    const bool is_known = found != given_.end() && found->second.cycle == cycle_;
    for (std::size_t i = 0; i < kResources.size(); ++i) {
      Divided& divided = resources_[i];
      if (!divided.has_caps) continue;
      std::optional<std::uint64_t> cap;
      if (is_known) cap = found->second.grant.*kResources[i].grant;
      if (!is_known && divided.is_of_all) cap = 0;
      if (cap) divided.divider.divide(*cap, floor_.*kResources[i].amount, of_job, granted);
    }
    if (has_totals_) {
      const Cost more = found == given_.end() ? 0 : std::exchange(found->second.more, 0);
      siblings_.add(of_job, more, granted);
    }
  });
  return {};
}

}  // namespace vpfs::allocation
