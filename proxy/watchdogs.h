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

// Tells when a client has stopped within a message that the data server has begun to receive. A
// thread of the server waits for the rest, and the server may never end that by itself.
class MessageWatch {
 public:
  // `waits_for_client`: such a message is half way, and the server would take more of it. `sent`
  // counts the bytes that the server has taken since the start. A byte now and then does not count.
  [[nodiscard]] bool is_overdue(bool waits_for_client, std::uint64_t sent, TimePoint now) {
    if (!waits_for_client || !since_ || sent - sent_ >= kLeast) {
      since_ = waits_for_client ? std::optional(now) : std::nullopt;
      sent_ = sent;
    }
    return since_ && now - *since_ >= kLongest;
  }
  // A BeeGFS server waits for 5 s, and then leaks the connection.
  static constexpr Duration kLongest = std::chrono::seconds(4);
  static constexpr std::uint64_t kLeast = std::uint64_t{64} * 1024;

 private:
  std::optional<TimePoint> since_;
  std::uint64_t sent_ = 0;
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
