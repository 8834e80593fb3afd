#include "proxy/shared_state.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "base/units.h"

namespace vpfs::proxy {
namespace {
constexpr Duration kHold =
    std::chrono::seconds(240);  // the time-out of OrangeFS clients is usually 300 s
}  // namespace

void SharedState::learn_client_timeout(const ClientTimeout& told) {
  const std::lock_guard lock(mutex_);
  if (file_systems_.empty()) file_systems_ = told.file_systems;
  const bool is_ours =
      told.file_systems.empty() ||
      std::ranges::find_first_of(file_systems_, told.file_systems) != file_systems_.end();
  if (!is_ours || told.timeout <= Duration::zero() || client_timeout_ == told.timeout) return;
  client_timeout_ = told.timeout;
  set_hold();
}

void SharedState::set_configured_hold(std::optional<Duration> configured, Duration least) {
  const std::lock_guard lock(mutex_);
  configured_hold_ = configured;
  least_hold_ = least;
  set_hold();
}

void SharedState::set_hold() {
  if (!client_timeout_) return hold.store(configured_hold_.value_or(kHold));
  // The rest of the time-out is for `server_stall`.
  const Duration limit = std::max(*client_timeout_ / 10 * 8, least_hold_);
  server_stall.store(limit / 8);
  if (limit > *client_timeout_ / 10 * 8) {
    spdlog::warn(
        "timeouts: clients give up after {}, but hold_min is {}: requests that are held for longer "
        "come too late",
        to_string(*client_timeout_), to_string(least_hold_));
  }
  const Duration allowed = std::min(configured_hold_.value_or(limit), limit);
  if (hold.exchange(allowed) == allowed) return;
  if (configured_hold_ && *configured_hold_ > limit) {
    spdlog::warn(
        "timeouts: hold is {}, but clients give up after {}: requests are held for {} at most",
        to_string(*configured_hold_), to_string(*client_timeout_), to_string(allowed));
  } else {
    spdlog::info("clients wait {} for an answer: requests are held for {} at most",
                 to_string(*client_timeout_), to_string(allowed));
  }
}

}  // namespace vpfs::proxy
