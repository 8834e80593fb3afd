// Allocating: the part of Stage that takes on what coordinators allow, and ends it.
#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "stage/stage.h"

namespace vpfs::stage {
namespace {

// Notices of leases that end are this far apart.
constexpr Duration kBetweenNotices = std::chrono::minutes(1);
// How many virtual PFSes earlier what a limit changes is fetched into the cache: memory is then
// not waited for.
constexpr std::size_t kAhead = 4;

bool asks_for_more_than(const PolicyKind& policy, std::span<const Allocation> allocations) {
  return std::ranges::any_of(allocations, [&policy](const Allocation& each) {
    return (each.limits.any() && !policy.caps) || (each.elsewhere_total && !policy.elsewhere);
  });
}

}  // namespace

CycleAnswer Stage::allocate(const Cycle& cycle, std::span<const Allocation> allocations,
                            TimePoint now) {
  CycleAnswer answer = {.result = begin_cycle(cycle, allocations, now)};
  if (answer.result != CycleResult::applied) return answer;
  allocate_some(cycle.epoch, allocations, now, answer.unknown);
  if (cycle.complete) (void)lift_unmentioned(cycle.epoch, 0, table_.size(), now);
  return answer;
}

CycleResult Stage::begin_cycle(const Cycle& cycle, std::span<const Allocation> allocations,
                               TimePoint now) {
  end_lease_if_due(now);
  if (allocations_.refuses(cycle.epoch)) return CycleResult::outdated;
  if (asks_for_more_than(lanes_.policy(), allocations)) {
    allocations_.refuse_unsupported();
    return CycleResult::unsupported;
  }
  allocations_.begin(cycle, now);
  lanes_.measure(now);
  if (cycle.lease == Duration::zero()) end_lease("the coordinator has taken its limits back", now);
  return CycleResult::applied;
}

void Stage::allocate_some(Epoch epoch, std::span<const Allocation> some, TimePoint now,
                          std::vector<VirtualPfsId>& unknown) {
  end_lease_if_due(now);
  if (!allocations_.is_current(epoch)) return;
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (i + 2 * kAhead < some.size()) prefetch_rows(some[i + 2 * kAhead].id.app);
    if (i + kAhead < some.size()) prefetch_head(some[i + kAhead].id.app);
    const Allocation& each = some[i];
    const AppId app = each.id.app;
    const bool is_there = std::to_underlying(app) < table_.size() && table_.is_there(each.id) &&
                          !table_[app].info->removed;
    if (!is_there) {
      allocations_.count_unknown();
      unknown.push_back(each.id);
      continue;
    }
    if (allocations_.set_limits(app, each.limits)) limit(app, each.limits, now);
    if (!each.elsewhere_total) continue;
    const std::optional<Cost> more = allocations_.elsewhere(app, *each.elsewhere_total);
    if (!more) continue;
    const Cost request = table_[app].recent_kib * kKiB;
    lanes_.served_elsewhere(app, {.cost = *more, .delay = longest_delay_, .request = request}, now);
  }
}

void Stage::prefetch_rows(AppId app) {
  if (std::to_underlying(app) >= table_.size()) return;
  __builtin_prefetch(&table_[app]);
  allocations_.prefetch(app);
  for (Lanes::Lane& lane : lanes_) lane.scheduler->prefetch_rows(app);
}

void Stage::prefetch_head(AppId app) {
  if (std::to_underlying(app) >= table_.size()) return;
  __builtin_prefetch(table_[app].info.get());
  for (Lanes::Lane& lane : lanes_) lane.scheduler->prefetch_head(app);
}

std::size_t Stage::lift_unmentioned(Epoch epoch, std::size_t first, std::size_t most,
                                    TimePoint now) {
  end_lease_if_due(now);
  const std::size_t end = std::min(first + most, table_.size());
  for (; first < end && allocations_.is_current(epoch); ++first) {
    const AppId app{static_cast<std::uint32_t>(first)};
    if (!allocations_.limits(app).any() || allocations_.was_mentioned(app)) continue;
    (void)allocations_.set_limits(app, {});
    limit(app, {}, now);
  }
  return first;
}

void Stage::limit(AppId app, const Limits& limits, TimePoint now) {
  for (Lanes::Lane& lane : lanes_) (void)lane.scheduler->set_limits(app, limits, now);
}

void Stage::limit_all(const Limits& limits, TimePoint now) {
  // Lifting moves the last one of the list into the gap.
  for (std::size_t i = allocations_.limited().size(); i > 0; --i) {
    const AppId app = allocations_.limited()[i - 1];
    if (allocations_.set_limits(app, limits)) limit(app, limits, now);
  }
}

void Stage::end_lease(std::string_view why, TimePoint now) {
  const std::size_t count = allocations_.limited().size();
  allocations_.end();
  for (Lanes::Lane& lane : lanes_) lane.scheduler->forget_elsewhere(now);
  fall_back(now);
  if (now < quiet_until_) return;
  quiet_until_ = now + kBetweenNotices;
  std::string what = "are lifted";
  if (fallback_.mode == Fallback::Mode::last) what = "stay";
  if (fallback_.mode == Fallback::Mode::rate) what = "become " + to_string(fallback_.rate);
  notices_.push_back(fmt::format("{}: its limits {} (virtual PFSes: {})", why, what, count));
}

void Stage::fall_back(TimePoint now) {
  switch (fallback_.mode) {
    case Fallback::Mode::configured:
      return limit_all({}, now);
    case Fallback::Mode::last:
      return;
    case Fallback::Mode::rate:
      return limit_all({.bytes = fallback_.rate}, now);
  }
}

void Stage::use_fallback(const Fallback& fallback, TimePoint now) {
  if (fallback_ == fallback) return;
  fallback_ = fallback;
  if (!allocations_.in_force()) fall_back(now);
}

void Stage::lift_unsupported(TimePoint now) {
  const std::size_t count = allocations_.limited().size();
  if (lanes_.policy().caps || count == 0) return;
  limit_all({}, now);
  notices_.push_back(fmt::format(
      "the policy {} cannot enforce a coordinator's limits: they are lifted (virtual PFSes: {})",
      lanes_.policy().name, count));
}

bool Stage::set_hold(Duration hold, TimePoint now) {
  if (hold_ == hold) return false;
  hold_ = hold;
  for (Lanes::Lane& lane : lanes_) lane.scheduler->set_hold(hold, now);
  return true;
}

}  // namespace vpfs::stage
