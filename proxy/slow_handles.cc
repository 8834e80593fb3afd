#include "proxy/slow_handles.h"

#include "base/check.h"

namespace vpfs::proxy {

void SlowHandles::slowed(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  add_one(handle, &Counts::slow);
  ++slow_;
}

void SlowHandles::slow_ended(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  --slow_;
  end_one(handle, &Counts::slow);
}

void SlowHandles::stuck(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  add_one(handle, &Counts::stuck);
}

void SlowHandles::stuck_ended(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  end_one(handle, &Counts::stuck);
}

void SlowHandles::add_one(std::uint64_t handle, std::size_t Counts::*of) {
  Counts& counts = counts_[handle];
  const bool was_blocked = counts.is_blocked();
  ++(counts.*of);
  if (!was_blocked && counts.is_blocked()) ++held_back_;
}

void SlowHandles::end_one(std::uint64_t handle, std::size_t Counts::*of) {
  const auto found = counts_.find(handle);
  VPFS_ASSERT(found != counts_.end() && found->second.*of > 0);
  Counts& counts = found->second;
  const bool was_blocked = counts.is_blocked();
  --(counts.*of);
  const bool is_slow_no_more = of == &Counts::slow && counts.slow == 0;
  if (is_slow_no_more || (was_blocked && !counts.is_blocked())) ++freed_;
  if (counts.slow == 0 && counts.stuck == 0) counts_.erase(found);
}

SlowHandles::Counts SlowHandles::find(std::uint64_t handle) const {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(handle);
  return found == counts_.end() ? Counts{} : found->second;
}

bool SlowHandles::is_slow(std::uint64_t handle) const {
  return find(handle).slow > 0;
}

bool SlowHandles::is_blocked(std::uint64_t handle) const {
  return find(handle).is_blocked();
}

}  // namespace vpfs::proxy
