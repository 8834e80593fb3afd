#include "stage/allocations.h"

#include <algorithm>
#include <utility>

namespace vpfs::stage {
namespace {
// Keeps times from overflowing.
constexpr Duration kLongestLease = std::chrono::hours(24 * 365);
}  // namespace

bool Allocations::refuses(Epoch epoch) {
  if (!epoch_ || epoch > *epoch_) return false;
  ++counts_.outdated;
  return true;
}

void Allocations::begin(const Cycle& cycle, TimePoint now) {
  if (!epoch_ || cycle.epoch.term != epoch_->term) ++base_;
  epoch_ = cycle.epoch;
  lease_end_ = now + std::clamp(cycle.lease, Duration::zero(), kLongestLease);
  ++cycle_;
  ++counts_.applied;
}

Allocations::Row& Allocations::row(AppId app) {
  if (index(app) >= rows_.size()) rows_.resize(index(app) + 1);
  return rows_[index(app)];
}

bool Allocations::set_limits(AppId app, const Limits& limits) {
  Row& of = row(app);
  of.cycle = cycle_;
  if (of.limits == limits) return false;
  of.limits = limits;
  const bool is_listed = of.place != kNowhere;
  if (limits.any() && !is_listed) list(app);
  if (!limits.any() && is_listed) unlist(app);
  return true;
}

void Allocations::list(AppId app) {
  row(app).place = static_cast<std::uint32_t>(limited_.size());
  limited_.push_back(app);
}

// Moves the last one into the gap.
void Allocations::unlist(AppId app) {
  const std::uint32_t place = row(app).place;
  limited_[place] = limited_.back();
  row(limited_[place]).place = place;
  limited_.pop_back();
  row(app).place = kNowhere;
}

std::optional<Cost> Allocations::elsewhere(AppId app, Cost total) {
  Row& of = row(app);
  if (std::exchange(of.base, base_) != base_) {
    of.total = total;
    return 0;
  }
  if (total < of.total) {
    ++counts_.totals_decreased;
    return std::nullopt;
  }
  const Cost more = total - std::exchange(of.total, total);
  if (more > kMaxCost) ++counts_.totals_cut;
  const Cost counted = std::min(more, kMaxCost);
  of.elsewhere += counted;
  return counted;
}

void Allocations::end() {
  lease_end_ = kNever;
  ++base_;
}

void Allocations::forget(AppId app) {
  if (index(app) >= rows_.size()) return;
  (void)set_limits(app, {});
  row(app) = {};
}

Limits Allocations::limits(AppId app) const {
  return index(app) < rows_.size() ? rows_[index(app)].limits : Limits{};
}

}  // namespace vpfs::stage
