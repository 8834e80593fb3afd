#include "fuse/posix/lock_watch.h"

#include <algorithm>

namespace vpfs::fuse {

void LockWatch::see(std::span<const std::uint64_t> objects, AppId app, TimePoint now) {
  for (const std::uint64_t each : objects) {
    if (each != 0) (void)see(each, app, now);
  }
}

TimePoint LockWatch::may_hold_until(std::span<const std::uint64_t> objects, const Visitor& visitor,
                                    TimePoint now) {
  TimePoint until = now + kLongestHold;
  for (const std::uint64_t each : objects) {
    if (each != 0) until = std::min(until, may_hold_until(each, visitor, now));
  }
  return until;
}

LockWatch::Object& LockWatch::see(std::uint64_t object, AppId app, TimePoint now) {
  if (all_.size() >= kMostObjects && !all_.contains(object)) forget_some(now);
  const auto [place, is_new] = all_.try_emplace(object);
  Object& seen = place->second;
  if (!is_new && seen.app != app && now - seen.came < kMemory) seen.shared_until = now + kMemory;
  seen.app = app;
  seen.came = now;
  return seen;
}

TimePoint LockWatch::may_hold_until(std::uint64_t object, const Visitor& visitor, TimePoint now) {
  Object& seen = see(object, visitor.app, now);
  if (now < seen.shared_until) return now;
  auto visit = seen.visits.end();
  if (visitor.thread != 0) {
    visit = std::ranges::find(seen.visits, visitor.thread, &Visit::thread);
  }
  const bool came_before = visit != seen.visits.end();
  const bool goes_on = came_before && visit->asks && visit->steps < kMostSteps;
  const bool is_held_now = now < seen.held_until;
  const bool may_have_waited =
      !came_before && !seen.visits.empty() && seen.visits.size() <= kMostWaiting;
  if (!is_held_now && !goes_on && !may_have_waited) {
    seen.visits.assign(1, {.thread = visitor.thread, .steps = 1, .asks = visitor.asks});
    seen.held_until = now + kLongestHold;
    return seen.held_until;
  }
  if (came_before) {
    visit->steps = goes_on ? visit->steps + 1 : 1;
    visit->asks = visitor.asks;
  } else if (!is_held_now) {
    seen.visits.push_back({.thread = visitor.thread, .steps = 1, .asks = visitor.asks});
  }
  return is_held_now ? seen.held_until : now;
}

// Those that are of no use any more; all of them if these are few.
void LockWatch::forget_some(TimePoint now) {
  std::erase_if(all_, [&](const auto& each) { return now - each.second.came >= kMemory; });
  if (all_.size() > kMostObjects / 2) all_.clear();
}

}  // namespace vpfs::fuse
