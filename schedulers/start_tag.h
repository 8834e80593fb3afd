#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "schedulers/divider.h"
#include "schedulers/request.h"
#include "schedulers/share.h"

namespace vpfs {

// The start tag of one flow or traffic class under start-time fair queueing [SFQ]. Sfq explains the
// equations. `v` is the virtual time of the order that the tag belongs to.
//
// Tags are fixed point with kFractionBits. One request moves a tag by at most 2^60, so tags stay
// below 2^63 as long as their owner takes v off all of them when v passes kRebaseAt.
class StartTag {
 public:
  using Tag = std::uint64_t;
  static constexpr int kFractionBits = 20;  // so that even one byte at kMaxWeight is not free
  static constexpr Tag kRebaseAt = Tag{1} << 62;
  static_assert(kMaxCost << kFractionBits == Tag{1} << 60);
  static_assert((Tag{1} << kFractionBits) >= Share::kMaxWeight);

  explicit StartTag(std::uint32_t weight_of = 1) : weight(weight_of) {}

  static constexpr Tag subtract_to_zero(Tag from, Tag amount) {
    return from - std::min(from, amount);
  }

  // Sets the weight of later requests.
  void set_weight(std::uint32_t to) {
    weight = Divider(to);
    remainder_ = 0;
  }
  // Returns cost / weight and carries the remainder of the division to the next call.
  Tag next_amount(Cost cost) {
    const Divider::Result exact = weight.divide((cost << kFractionBits) + remainder_);
    remainder_ = static_cast<std::uint32_t>(exact.remainder);
    return exact.quotient;
  }
  // Returns cost / weight, rounded down.
  [[nodiscard]] Tag amount_of(Cost cost) const {
    return weight.divide(cost << kFractionBits).quotient;
  }

  // A request of this amount was sent, and the next one is queued.
  void use_credit(Tag amount) {
    const Tag used = std::min(credit, amount);
    credit -= used;
    tag -= used;
  }
  // Nothing is queued any more.
  void end_backlog() { tag = subtract_to_zero(tag, std::exchange(credit, 0)); }
  // A request did less than it was charged, by `amount`. The tag of a backlogged flow does not go
  // below v: the rest becomes credit.
  void give_back(Tag amount, Tag v, bool backlogged) {
    if (!backlogged) {
      tag = subtract_to_zero(tag, amount);
      return;
    }
    const Tag used = std::min(amount, subtract_to_zero(tag, v));
    tag -= used;
    // Saturates if more than 16 of the largest requests at weight 1 come back at once.
    if (__builtin_add_overflow(credit, amount - used, &credit)) credit = ~Tag{0};
  }
  // Takes v off the tag. The owner then sets v to zero.
  void rebase(Tag v) { tag = subtract_to_zero(tag, v); }

  // The rest of the last division, for a successor with the same weight.
  [[nodiscard]] std::uint32_t remainder() const { return remainder_; }
  void set_remainder(std::uint64_t remainder) {
    remainder_ = static_cast<std::uint32_t>(std::min(remainder, weight.divisor() - 1));
  }

  Tag tag = 0;     // S of the head; while nothing is queued, F of what was sent last
  Tag credit = 0;  // zero while nothing is queued
  Divider weight;

 private:
  std::uint32_t remainder_ = 0;  // of the last division by weight
};

}  // namespace vpfs
