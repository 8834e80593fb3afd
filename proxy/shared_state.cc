#include "proxy/shared_state.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "base/units.h"

namespace vpfs::proxy {
namespace {
constexpr Duration kHold = std::chrono::seconds(240);  // of OrangeFS's usual 300 s
}  // namespace

void SharedState::learn_client_timeout(Duration timeout) {
  if (timeout <= Duration::zero()) return;
  const std::lock_guard lock(mutex_);
  client_timeout_ = timeout;
  server_stall.store(timeout / 10);
  set_hold();
}

void SharedState::set_configured_hold(std::optional<Duration> configured) {
  const std::lock_guard lock(mutex_);
  configured_hold_ = configured;
  set_hold();
}

void SharedState::set_hold() {
  if (!client_timeout_) return hold.store(configured_hold_.value_or(kHold));
  // The rest of the time-out is for what a connection keeps back behind `server_stall`.
  const Duration limit = *client_timeout_ / 10 * 8;
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
