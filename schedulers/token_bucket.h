#pragma once

#include <cstdint>

#include "base/clock.h"
#include "schedulers/divider.h"

namespace vpfs {

// A token bucket that fills at `rate` tokens each second up to `depth`, kept as one number: the
// time at which it will be full again. So nothing has to be filled as time passes, and no fraction
// of a token is ever lost or made: over any interval of t seconds no more than
// max(depth, largest request) + rate x t tokens are taken by requests that wait for ready_at().
//
// Times are kept to the nanosecond with the remainder of the last division. A bucket that could not
// be full again within 2^60 ns (36 years) counts as full then.
class TokenBucket {
 public:
  // REQUIRES: 1 <= rate <= 2^50, depth >= 1. The bucket is full.
  TokenBucket(std::uint64_t rate, std::uint64_t depth);
  TokenBucket() : TokenBucket(1, 1) {}

  // Keeps what is missing; what a bucket had beyond its depth is lost.
  void change(std::uint64_t rate, std::uint64_t depth, TimePoint now);

  // When the bucket holds `tokens`; if it never does, when it is full.
  [[nodiscard]] TimePoint ready_at(std::uint64_t tokens) const;
  // Takes tokens out, whether they are there or not. What the bucket had not yet been full of at
  // `from` counts as filled since; pass `now`, or an earlier time to keep what overflowed after it.
  void take(std::uint64_t tokens, TimePoint from);
  // The whole tokens in it; less than zero when more were taken.
  [[nodiscard]] std::int64_t level(TimePoint now) const;

  [[nodiscard]] std::uint64_t rate() const { return rate_.divisor(); }
  [[nodiscard]] std::uint64_t depth() const { return depth_; }

 private:
  __extension__ using Wide = unsigned __int128;

  struct Span {
    std::int64_t nanoseconds;
    std::uint64_t remainder;  // of a nanosecond, in parts of rate
  };
  // How long `tokens` take to come, with `remainder` parts more; at most 2^60 ns.
  [[nodiscard]] Span time_for(std::uint64_t tokens, std::uint64_t remainder) const;
  [[nodiscard]] Span time_of(Wide parts) const;
  // What it is short of at `now`, in parts of 10^9 of a token.
  [[nodiscard]] Wide missing_parts(TimePoint now) const;

  Divider rate_;
  std::uint64_t depth_;
  std::int64_t full_at_ = 0;     // nanoseconds of TimePoint
  std::uint64_t remainder_ = 0;  // of full_at_, in parts of rate
};

}  // namespace vpfs
