#include "client/orangefs/calls/retry.h"

#include <algorithm>

namespace vpfs::client {
namespace {

constexpr Duration kLongestBackoff = std::chrono::seconds(2);

}  // namespace

std::optional<Duration> Retry::after(std::error_code failure, TimePoint now) {
  // The session is closed, or the server speaks another protocol.
  const bool final =
      failure == std::errc::connection_aborted || failure == std::errc::protocol_not_supported;
  if (final) return std::nullopt;
  const std::uint32_t repeated = attempts_++;
  if (!rule_.retry_for) {
    if (repeated >= rule_.limit) return std::nullopt;
    // After a time-out the client has waited already.
    return failure == std::errc::timed_out ? Duration::zero() : rule_.delay;
  }
  if (now >= end_) {
    if (repeated > 0) return std::nullopt;
    return backoff_;
  }
  const Duration pause = std::min(backoff_, end_ - now);
  backoff_ = std::min(2 * backoff_, kLongestBackoff);
  return pause;
}

}  // namespace vpfs::client
