#include "stage/lanes.h"

#include <algorithm>

namespace vpfs::stage {

Lanes::Lanes(const PolicyKind& policy, const SchedulerSettings& settings, bool per_target)
    : policy_(&policy), settings_(settings), per_target_(per_target) {
  lanes_.push_back({.target = std::nullopt, .scheduler = make()});
}

bool Lanes::use(const PolicyKind& policy, const SchedulerSettings& settings) {
  if (&policy == policy_ && settings == settings_) return false;
  policy_ = &policy;
  settings_ = settings;
  return true;
}

std::unique_ptr<Scheduler> Lanes::make() {
  return make_scheduler(*policy_, settings_, per_target_ ? &limits_ : nullptr);
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

void Lanes::served_elsewhere(AppId app, Cost cost, Duration delay, std::size_t last_lane,
                             TimePoint now) {
  const auto waits_in = [app](const Lane& lane) { return lane.scheduler->flow(app).queued > 0; };
  auto count = static_cast<std::uint64_t>(std::ranges::count_if(lanes_, waits_in));
  if (count == 0) return lanes_[last_lane].scheduler->served_elsewhere(app, cost, delay, now);
  for (Lane& lane : lanes_) {
    if (!waits_in(lane)) continue;
    const Cost part = cost / count--;  // so that the parts sum to the whole
    lane.scheduler->served_elsewhere(app, part, delay, now);
    cost -= part;
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
