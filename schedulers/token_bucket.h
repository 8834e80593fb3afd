#pragma once

#include <algorithm>
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
  // The same, but with a smaller depth it keeps the tokens, or the debt, that it has. What only the
  // larger bucket lacks is not owed by the smaller one.
  void fit(std::uint64_t rate, std::uint64_t depth, TimePoint now) {
    depth < depth_ ? refit(rate, depth, now, now) : change(rate, depth, now);
  }
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

  template <typename Archive>
  void archive(Archive& fields) {
    std::uint64_t of_rate = rate();
    fields("rate", of_rate);
    fields("depth", depth_);
    fields("full_at", full_at_);
    fields("remainder", remainder_);
    if constexpr (Archive::kReads) {
      rate_ = Divider(std::clamp<std::uint64_t>(of_rate, 1, std::uint64_t{1} << 50));
      depth_ = std::max<std::uint64_t>(depth_, 1);
      remainder_ = std::min(remainder_, rate() - 1);
    }
  }

 private:
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;
  // Below it, tokens x 10^9 plus a remainder fits into 64 bits.
  static constexpr std::uint64_t kFewTokens = std::uint64_t{1} << 33;

  struct Span {
    std::int64_t nanoseconds;
    std::uint64_t remainder;  // of a nanosecond, in parts of rate
  };
  // How long `tokens`, fewer than kFewTokens, take to come, with `remainder` parts more; at most
  // 2^60 ns.
  [[nodiscard]] Span time_for_few(std::uint64_t tokens, std::uint64_t remainder) const;
  [[nodiscard]] Span time_of(Wide parts) const;
  // What ready_at() and take() do for kFewTokens or more. It is apart from them so that they need
  // few registers for fewer tokens.
  [[nodiscard]] TimePoint many_ready_at(std::uint64_t missing) const;
  void take_many(std::uint64_t tokens, TimePoint from);
  void add(Span time, TimePoint from);
  // The bucket is full at full_up() - before_full() / rate. Rounded up, no time is too early.
  [[nodiscard]] std::int64_t full_up() const { return full_at_ + (remainder_ > 0 ? 1 : 0); }
  [[nodiscard]] std::uint64_t before_full() const {
    return remainder_ > 0 ? rate() - remainder_ : 0;
  }
  [[nodiscard]] static std::int64_t nanoseconds(TimePoint time) {
    return time.time_since_epoch().count();
  }
  // The missing tokens at `now`, in units of 10^-9.
  [[nodiscard]] Wide missing_parts(TimePoint now) const;
  void set_missing(Wide parts, TimePoint now);

  Divider rate_;
  std::uint64_t depth_;
  std::int64_t full_at_ = 0;     // nanoseconds of TimePoint
  std::uint64_t remainder_ = 0;  // of full_at_, in parts of rate
};

// These are called for each request.
inline TokenBucket::Span TokenBucket::time_for_few(std::uint64_t tokens,
                                                   std::uint64_t remainder) const {
  const Divider::Result exact = rate_.divide(tokens * kNanosecondsPerSecond + remainder);
  if (exact.quotient >= kLongest) return {.nanoseconds = kLongest, .remainder = 0};
  return {.nanoseconds = static_cast<std::int64_t>(exact.quotient), .remainder = exact.remainder};
}

inline TimePoint TokenBucket::ready_at(std::uint64_t tokens) const {
  if (tokens >= depth_) return TimePoint(Duration(full_up()));
  const std::uint64_t missing = depth_ - tokens;
  if (missing >= kFewTokens) return many_ready_at(missing);
  return TimePoint(Duration(full_up() - time_for_few(missing, before_full()).nanoseconds));
}

inline void TokenBucket::take(std::uint64_t tokens, TimePoint from) {
  if (full_at_ < nanoseconds(from)) {
    full_at_ = nanoseconds(from);
    remainder_ = 0;
  }
  if (tokens >= kFewTokens) return take_many(tokens, from);
  add(time_for_few(tokens, remainder_), from);
}

inline void TokenBucket::add(Span more, TimePoint from) {
  full_at_ += more.nanoseconds;
  remainder_ = more.remainder;
  const std::int64_t latest = nanoseconds(from) + std::int64_t{kLongest};
  if (full_at_ < latest) return;
  full_at_ = latest;
  remainder_ = 0;
}

}  // namespace vpfs
