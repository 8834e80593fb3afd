#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

// What a session is watched for a few times a second, apart from clients that stall
// (client_stall_watch.h). All of it decides only; the session acts.
namespace vpfs::proxy {

// Tells when to ask whether a client is still there. The end of a stream that is not read shows
// nowhere else: behind a held write stand its data.
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

// Tells when answers are given up that the client's stream waits for: a data server that never
// gives them must not keep the stream for ever.
class AnswerWatch {
 public:
  // `received`: bytes of the data server's since the start. True when the client's stream has
  // waited, and nothing was received, for `limit`; then again after as long.
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

// How a request that has been let go may come to the data server after its client has given up.
enum class LateForwarding : std::uint8_t {
  none,
  server_blocked,     // the upstream connection takes nothing
  client_in_message,  // the client has left the message before it half sent
};
[[nodiscard]] inline LateForwarding late_forwarding(std::optional<TimePoint> blocked_since,
                                                    std::optional<TimePoint> waiting_since,
                                                    Duration limit, TimePoint now) {
  if (blocked_since && now - *blocked_since >= limit) return LateForwarding::server_blocked;
  if (waiting_since && now - *waiting_since >= limit) return LateForwarding::client_in_message;
  return LateForwarding::none;
}

// What the silence of an outstanding request means.
enum class Silence : std::uint8_t {
  none,
  // Where the end of a request does not show, it gives its slot up, or has ended.
  pause,
  end,
  overdue,  // its end will not be seen any more
};
// `limit`: timeouts.service.
[[nodiscard]] Silence silence_of(Duration without_progress, Duration limit);

}  // namespace vpfs::proxy
