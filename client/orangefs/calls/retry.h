#pragma once

#include <cstdint>
#include <optional>
#include <system_error>

#include "base/clock.h"

namespace vpfs::client {

// How often a request is repeated when its transport fails.
struct RetryRule {
  // As the servers configure it: so many times, with this pause.
  std::uint32_t limit = 5;
  Duration delay = std::chrono::seconds(2);
  // Where set, this takes the place of both: pauses from 50 ms that double up to 2 s, until so long
  // after the request. No attempt begins later, except one after a first that took all that time:
  // a server that has restarted is found only when the connection to it is lost.
  std::optional<Duration> retry_for = {};
};

// The attempts of one request.
class Retry {
 public:
  // The first attempt begins at `now`.
  Retry(const RetryRule& rule, TimePoint now)
      : rule_(rule), end_(now + rule.retry_for.value_or(Duration::zero())) {}

  // The pause before the next attempt, after one that failed at `now`; nothing: the failure is
  // final.
  [[nodiscard]] std::optional<Duration> after(std::error_code failure, TimePoint now);

 private:
  RetryRule rule_;
  std::uint32_t attempts_ = 0;
  Duration backoff_ = std::chrono::milliseconds(50);
  TimePoint end_;  // of repetition for a time
};

}  // namespace vpfs::client
