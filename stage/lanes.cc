#include "stage/lanes.h"

#include <algorithm>

namespace vpfs::stage {

Lanes::Lanes(const PolicyKind& policy, const SchedulerSettings& settings, bool per_target)
    : policy_(&policy), settings_(settings), per_target_(per_target) {
  if (per_target) totals_ = std::make_unique<Scheduler::TotalServices>();
  lanes_.push_back({.target = std::nullopt, .scheduler = make()});
}

bool Lanes::use(const PolicyKind& policy, const SchedulerSettings& settings) {
  if (&policy == policy_ && settings == settings_) return false;
  policy_ = &policy;
  settings_ = settings;
  return true;
}

std::unique_ptr<Scheduler> Lanes::make() {
  return make_scheduler(*policy_, settings_, per_target_ ? &limits_ : nullptr, totals_.get());
}

Lanes::Found Lanes::find(std::uint32_t target) {
  if (!per_target_) return {.lane = 0, .made = false};
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].target) lanes_[i].target = target;
    if (lanes_[i].target == target) return {.lane = i, .made = false};
  }
  if (lanes_.size() == kMost) return {.lane = reused_for(target), .made = false};
  lanes_.push_back({.target = target, .scheduler = make()});
  return {.lane = lanes_.size() - 1, .made = true};
}

void Lanes::served_elsewhere(AppId app, const Elsewhere& elsewhere, TimePoint now) {
  for (Lane& lane : lanes_) {
    const Duration delay = elsewhere.delay.value_or(lane.speed.longest_delay(elsewhere.request));
    lane.scheduler->served_elsewhere(app, elsewhere.cost, delay, now);
  }
}

void Lanes::set_longest_delay(std::optional<Duration> delay) {
  if (totals_ == nullptr) return;
  for (TotalService& each : *totals_) {
    each.set_longest_delay(delay.value_or(ServiceSpeed::kShortest));
  }
}

// A client that names many targets must not take the lanes from those in use.
std::size_t Lanes::reused_for(std::uint32_t target) {
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    const Scheduler& scheduler = *lanes_[i].scheduler;
    if (scheduler.queued() > 0 || scheduler.outstanding() > 0) continue;
    lanes_[i].target = target;
    return i;
  }
  return 0;
}

}  // namespace vpfs::stage
