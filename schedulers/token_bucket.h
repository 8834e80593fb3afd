#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/wide.h"
#include "schedulers/divider.h"

namespace vpfs {

// A token bucket that fills at `rate` tokens each second up to `depth`. It is one number: the time
// at which it will be full again. So no call is needed as time passes, and no fraction of a token
// is lost or made: over any interval of t seconds, requests that wait for ready_at() take no more
// than max(depth, largest request) + rate x t tokens.
//
// Times are kept to the nanosecond with the remainder of the last division. A bucket that needs
// more than 2^60 ns (36 years) to be full counts as full then.
class TokenBucket {
 public:
  // REQUIRES: 1 <= rate <= 2^50, depth >= 1. The bucket is full.
  TokenBucket(std::uint64_t rate, std::uint64_t depth);
  TokenBucket() : TokenBucket(1, 1) {}

  // Keeps the missing tokens. Tokens beyond the new depth are lost.
  void change(std::uint64_t rate, std::uint64_t depth, TimePoint now);
  // Keeps the tokens, or the debt, that it had at `from`, as if no time had passed since. Tokens
  // beyond the new depth are lost.
  void refit(std::uint64_t rate, std::uint64_t depth, TimePoint from, TimePoint now);

  // When the bucket holds `tokens`, or is full if it never does.
  [[nodiscard]] TimePoint ready_at(std::uint64_t tokens) const;
  // Takes tokens out, whether they are there or not. `from` is `now`, or an earlier time: then
  // tokens that overflowed after it are kept.
  void take(std::uint64_t tokens, TimePoint from);
  // Takes `tokens`, or those that are there if they are fewer.
  void take_present(std::uint64_t tokens, TimePoint now);
  // The whole tokens in the bucket; below zero if more were taken.
  [[nodiscard]] std::int64_t level(TimePoint now) const;

  [[nodiscard]] std::uint64_t rate() const { return rate_.divisor(); }
  [[nodiscard]] std::uint64_t depth() const { return depth_; }

 private:
  struct Span {
    std::int64_t nanoseconds;
    std::uint64_t remainder;  // of a nanosecond, in parts of rate
  };
  // How long `tokens` take to come, with `remainder` parts more; at most 2^60 ns.
  [[nodiscard]] Span time_for(std::uint64_t tokens, std::uint64_t remainder) const;
  [[nodiscard]] Span time_of(Wide parts) const;
  // The missing tokens at `now`, in units of 10^-9.
  [[nodiscard]] Wide missing_parts(TimePoint now) const;
  void set_missing(Wide parts, TimePoint now);

  Divider rate_;
  std::uint64_t depth_;
  std::int64_t full_at_ = 0;     // nanoseconds of TimePoint
  std::uint64_t remainder_ = 0;  // of full_at_, in parts of rate
};

}  // namespace vpfs
