#include "proxy/shared_state.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "base/units.h"

namespace vpfs::proxy {

void SharedState::learn_client_timeout(Duration timeout) {
  if (timeout <= Duration::zero()) return;
  server_stall.store(timeout / 10);
  const Duration limit = timeout / 10 * 8;
  if (config.timeouts.hold) {
    // The rest of the time-out is for what a connection keeps back behind `server_stall`.
    const Duration allowed = std::min(*config.timeouts.hold, limit);
    if (hold.exchange(allowed) != allowed) {
      spdlog::warn(
          "timeouts: hold is {}, but clients give up after {}: requests are held for {} at most",
          to_string(*config.timeouts.hold), to_string(timeout), to_string(allowed));
    }
    return;
  }
  if (hold.exchange(limit) != limit) {
    spdlog::info("clients wait {} for an answer: requests are held for {} at most",
                 to_string(timeout), to_string(limit));
  }
}

}  // namespace vpfs::proxy
