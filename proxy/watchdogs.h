#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

// Watches of a session, apart from the one for stalls (client_stall_watch.h). They only decide; the
// session acts. It looks a few times a second.
namespace vpfs::proxy {

// Tells when to check whether a client has hung up. The end of a stream that is not read shows
// nowhere else: the data of a held write come before it.
class HangUpWatch {
 public:
  [[nodiscard]] bool is_due(bool is_read, TimePoint now) {
    if (is_read || now - asked_ < kInterval) return false;
    asked_ = now;
    return true;
  }
  static constexpr Duration kInterval = std::chrono::milliseconds(500);

 private:
  TimePoint asked_ = {};
};

// Tells when to give up answers that the client's stream waits for. A data server that never gives
// them must not block the stream for ever.
class AnswerWatch {
 public:
  // True when the client's stream has waited for `limit` and nothing was received, and again after
  // each further `limit`. `received` counts the data server's bytes since the start.
  [[nodiscard]] bool is_overdue(bool waits, std::uint64_t received, Duration limit, TimePoint now) {
    const bool moved = received != received_;
    received_ = received;
    if (!waits || moved || !since_) since_ = now;
    if (now - *since_ < limit) return false;
    since_ = now;
    return true;
  }

 private:
  std::optional<TimePoint> since_;
  std::uint64_t received_ = 0;
};

// Why a released request may reach the data server after its client has given up.
enum class LateForwarding : std::uint8_t {
  none,
  server_blocked,     // the upstream connection takes nothing
  client_in_message,  // the client stopped in the middle of the message before it
};
[[nodiscard]] inline LateForwarding late_forwarding(std::optional<TimePoint> blocked_since,
                                                    std::optional<TimePoint> waiting_since,
                                                    Duration limit, TimePoint now) {
  if (blocked_since && now - *blocked_since >= limit) return LateForwarding::server_blocked;
  if (waiting_since && now - *waiting_since >= limit) return LateForwarding::client_in_message;
  return LateForwarding::none;
}

// What the silence of an outstanding request means. If its end does not show, a request gives its
// slot up after a pause, and counts as finished at `end`.
enum class Silence : std::uint8_t {
  none,
  pause,
  end,
  overdue,  // its end will never be seen
};
// `limit`: timeouts.service.
[[nodiscard]] Silence silence_of(Duration without_progress, Duration limit);

}  // namespace vpfs::proxy
