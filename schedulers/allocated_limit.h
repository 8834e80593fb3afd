#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "schedulers/token_bucket.h"

namespace vpfs {

// The bucket of a limit that a coordinator sets anew, many times a second, and lifts: of bytes or
// of operations.
//
// A change keeps the tokens and the debt. Neither a new rate nor a limit that is lifted and set
// again gives a burst: over any interval the requests that wait for ready_at() take no more than
// max(largest burst, largest request) + the integral of the rates. Only the very first limit may
// begin with a full bucket. A lifted limit fills at its last rate, and nothing is taken from it.
class AllocatedLimit {
 public:
  // The burst of a limit if none is configured: what the rate gives in kBurstTime, at least
  // `least`. So what several stages may do beyond their rates is one or two control cycles' worth.
  static constexpr Duration kBurstTime = std::chrono::milliseconds(100);
  static constexpr std::uint64_t kLeastBytes = 65536;  // the size of a usual small request
  static constexpr std::uint64_t kLeastOperations = 1;
  [[nodiscard]] static std::uint64_t burst_of(std::uint64_t rate, std::uint64_t least);

  // Both return whether anything changed. A rate of zero keeps the tokens where they are; rates
  // above Share::kMaxRate count as it. REQUIRES: burst >= 1.
  // `first`, if given, has the tokens that the very first limit begins with.
  bool set(std::uint64_t rate, std::uint64_t burst, const TokenBucket* first, TimePoint now);
  bool lift();
  [[nodiscard]] bool is_set() const { return is_set_; }

  // When the tokens are there; the past without a limit, and never while the rate is zero.
  [[nodiscard]] TimePoint ready_at(std::uint64_t tokens) const {
    if (!is_set_) return TimePoint::min();
    return rate_ == 0 ? kNever : bucket_.ready_at(tokens);
  }
  // `from` as in TokenBucket.
  void take(std::uint64_t tokens, TimePoint from) {
    if (is_set_) bucket_.take(tokens, filled_until(from));
  }
  // Takes the tokens that are there and leaves no debt.
  void take_present(std::uint64_t tokens, TimePoint now) {
    if (is_set_) bucket_.take_present(tokens, filled_until(now));
  }

  // Without whether it is set, which set() and lift() say.
  template <typename Archive>
  void archive(Archive& fields) {
    fields("bucket", bucket_);
    fields("rate", rate_);
    fields("stopped", stopped_);
    fields("is_new", is_new_);
  }

 private:
  [[nodiscard]] TimePoint filled_until(TimePoint now) const { return rate_ == 0 ? stopped_ : now; }

  TokenBucket bucket_;
  std::uint64_t rate_ = 0;  // zero: the bucket has not filled since `stopped_`
  TimePoint stopped_ = {};
  bool is_set_ = false;
  bool is_new_ = true;  // was never set
};

}  // namespace vpfs
