#pragma once

#include <algorithm>
#include <cstdint>

#include "schedulers/start_tag.h"

namespace vpfs {

// How far the tag of a flow may be from v when the flow comes back: so many requests of the flow
// whose requests move v the most, but no more than what some of the largest requests cost. Both are
// the largest lately.
class ClaimBound {
 public:
  using Tag = StartTag::Tag;

  // `steps`: of v; `requests`: the most that a claim may bring beside the weight's part.
  ClaimBound(Tag steps, Cost requests)
      : steps_(steps), requests_(requests), most_step_(StartTag::kRebaseAt / 4 / steps) {}

  // A request was sent, or will be, which moves its flow's tag by `amount`.
  void sent(Cost cost, Tag amount) {
    step_ = amount > step_ ? amount : step_ - (step_ - amount) / 1024;
    largest_ = cost > largest_ ? cost : largest_ - (largest_ - cost) / 1024;
  }
  [[nodiscard]] Tag most(const StartTag& of) const {
    return std::min(steps_ * std::min(step_, most_step_),
                    of.amount_of(std::min(requests_ * largest_, kMaxCost)));
  }

  template <typename Archive>
  void archive(Archive& fields) {
    fields("step", step_);
    fields("largest", largest_);
    if constexpr (Archive::kReads) largest_ = std::min(largest_, kMaxCost);
  }

 private:
  Tag steps_;
  Cost requests_;
  Tag most_step_;  // without an overflow of tags
  Tag step_ = 0;
  Cost largest_ = 0;
};

}  // namespace vpfs
