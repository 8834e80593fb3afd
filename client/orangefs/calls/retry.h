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
  // after the first failure. No attempt begins later.
  std::optional<Duration> retry_for = {};
};

// The attempts of one request.
class Retry {
 public:
  explicit Retry(const RetryRule& rule) : rule_(rule) {}

  // The pause before the next attempt, after one that failed at `now`; nothing: the failure is
  // final.
  [[nodiscard]] std::optional<Duration> after(std::error_code failure, TimePoint now);

 private:
  RetryRule rule_;
  std::uint32_t attempts_ = 0;
  Duration backoff_ = std::chrono::milliseconds(50);
  std::optional<TimePoint> end_;  // of repetition, once an attempt has failed
};

}  // namespace vpfs::client
