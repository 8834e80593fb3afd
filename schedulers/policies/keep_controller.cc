#include "schedulers/policies/keep_controller.h"

#include <utility>

#include "base/wide.h"

namespace vpfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kThousand = 1000;
// The ends of the balance, in requests: what the loss makes in so many of them, and not less than
// kLeastBalance, beside two of all that is outstanding, which may be done at once.
constexpr std::uint64_t kBalanceRequests = 96;
constexpr std::uint64_t kLeastBalance = 4;
// In such ends: where nothing more is kept, and the most that is remembered.
constexpr std::int64_t kStop = 4;
constexpr std::int64_t kMostDebt = 16;
// The loss of a second that is noise: a part of the second, beside two of all that is outstanding.
constexpr std::uint64_t kNoiseInverse = 100;
constexpr std::uint64_t kMostNoise = std::uint64_t{1} << 60;
constexpr std::uint32_t kLeastReference = 32;
constexpr std::uint32_t kFirstReference = 64;
constexpr std::uint32_t kToSettle = 8;
// On the way down: the part of the level that a step is, and what is enough to take it, in
// requests; the level is left where it does not come for twice as long as a level takes that costs
// nothing.
constexpr std::uint32_t kDescentStep = 4;
constexpr std::uint64_t kDescentGain = 4;
// Completions without a flow that is behind, after which a lower level is not tried, and after
// which the level rises.
constexpr std::uint32_t kBehindLasts = 256;
constexpr std::uint32_t kSatisfied = 512;

}  // namespace

std::uint64_t KeepController::reference() const {
  return static_cast<std::uint64_t>(Wide{rate_} * kSecond >> kRateBits);
}

Duration KeepController::time_of(Cost cost) const {
  const Wide time = Wide{cost} * time_per_cost_ >> kTimeBits;
  return Duration(static_cast<std::int64_t>(std::min<Wide>(time, Wide{1} << 60)));
}

void KeepController::begin_reference(TimePoint now) {
  phase_ = Phase::filling;
  phase_begin_ = now;
  phase_requests_ = 0;
  was_starved_ = false;
}

void KeepController::count(Cost cost, TimePoint sent, std::uint32_t outstanding, bool is_backlogged,
                           TimePoint now) {
  if (++idle_ > kIdle) {
    phase_ = Phase::off;
    return;
  }
  work_ += cost;
  mean_cost_ = mean_cost_ == 0 ? cost : mean_cost_ - mean_cost_ / 32 + cost / 32;
  if (phase_ == Phase::keeping) {
    settle(cost, outstanding, is_backlogged, now);
    if (until_reference_ == 0 || --until_reference_ == 0) begin_reference(now);
  } else {
    measure(cost, sent, outstanding, now);
  }
  was_backlogged_ = is_backlogged;
  left_ = outstanding;
  last_ = now;
}

// A phase begins and ends where completions do not come in one burst: a burst at its end would
// count as work without time.
void KeepController::measure(Cost cost, TimePoint sent, std::uint32_t outstanding, TimePoint now) {
  ++phase_requests_;
  if (phase_ == Phase::filling) {
    if (sent < phase_begin_ || now <= last_) return;
    phase_ = Phase::measuring;
    phase_begin_ = now;
    measured_ = 0;
    measured_requests_ = 0;
    return;
  }
  measured_ += cost;
  ++measured_requests_;
  const std::uint32_t enough = references_ < kEarly
                                   ? 8 * (outstanding + 1) + kFirstReference
                                   : std::max(4 * (outstanding + 1), kLeastReference);
  if (measured_requests_ < enough) return;
  const Duration mean_gap = (now - phase_begin_) / measured_requests_;
  const bool is_burst = now - last_ < mean_gap / 2;
  if (is_burst && measured_requests_ < 2 * enough) return;
  end_reference(now, outstanding);
}

void KeepController::end_reference(TimePoint now, std::uint32_t outstanding) {
  const auto time =
      static_cast<std::uint64_t>(std::max<std::int64_t>((now - phase_begin_).count(), 1));
  const auto seen = static_cast<std::uint64_t>(
      std::min<Wide>((Wide{measured_} << kRateBits) / time, Wide{1} << 62));
  const bool is_first = rate_ == 0;
  const std::uint64_t apart = std::max(seen, rate_) - std::min(seen, rate_);
  // A server that has changed is known by a difference that noise does not explain.
  const bool is_new = is_first || apart > rate_ / 2;
  const bool counts = !was_starved_ || is_first || seen > rate_;
  references_ = is_new && counts ? 1 : std::min(references_ + 1, kEarly + 1);
  if (counts) {
    // A phase may meet a moment in which nothing gets on. So the best of the first ones counts.
    const std::uint64_t mean = rate_ - rate_ / kMeanOf + seen / kMeanOf;
    set_rate(references_ > kEarly ? mean : is_new ? seen : std::max(rate_, seen));
    most_ = outstanding + 1;
    if (is_new) {
      move_to(most_, outstanding);
      has_explored_ = false;
      is_descending_ = true;
      balance_ = 0;
    }
  }
  until_reference_ = phase_requests_ * references_inverse();
  phase_ = Phase::keeping;
  was_backlogged_ = false;
}

std::uint32_t KeepController::references_inverse() const {
  const std::uint32_t most = was_starved_ ? kStarvedInverse : kReferenceInverse;
  return references_ < kEarly ? kFirstInverse * references_ : most;
}

void KeepController::set_rate(std::uint64_t rate) {
  rate_ = std::max<std::uint64_t>(rate, 1);
  least_rate_ = static_cast<std::uint64_t>(Wide{rate_} * (kThousand - max_loss_) / kThousand);
  time_per_cost_ = static_cast<std::uint64_t>(
      std::min<Wide>((Wide{1} << (kRateBits + kTimeBits)) / rate_, Wide{1} << 62));
  const Wide requests = (Wide{rate_} << (kRequestBits - kRateBits)) / std::max<Cost>(mean_cost_, 1);
  requests_per_time_ = static_cast<std::uint64_t>(std::min<Wide>(requests, Wide{1} << 32));
}

void KeepController::settle(Cost cost, std::uint32_t outstanding, bool is_backlogged,
                            TimePoint now) {
  if (settling_ > 0) --settling_;
  if (++since_behind_ > kSatisfied) {
    since_behind_ = kBehindLasts;
    if (level_ < most_) move_to(level_ + 1, outstanding);
  }
  const Gap gap = weigh(cost, outstanding, is_backlogged, now);
  if (is_descending_ && settling_ == 0) descend(gap, outstanding);
  const std::uint64_t requests = std::max(kBalanceRequests * max_loss_ / kThousand, kLeastBalance) +
                                 2 * std::uint64_t{outstanding};
  const auto end =
      static_cast<std::int64_t>(std::min(mean_cost_ * requests, std::uint64_t{1} << 56));
  if (balance_ > -end) is_in_debt_ = false;
  if (balance_ > end) {
    balance_ = end;
    if (settling_ > 0) return;
    if (level_ == 0 || since_behind_ > kBehindLasts) return;
    balance_ = 0;
    is_descending_ = true;
    move_to(level_ - std::max(1U, level_ / 8), outstanding);
  } else if (balance_ < -end) {
    balance_ = std::max(balance_, -kMostDebt * end);
    is_in_debt_ = is_in_debt_ || balance_ < -kStop * end;
    if (settling_ > 0) return;
    if (level_ >= most_) return begin_reference(now);  // it cannot be the level
    move_to(std::min(level_ + step_up(), most_), outstanding);
  }
}

void KeepController::descend(const Gap& gap, std::uint32_t outstanding) {
  ++tried_;
  if (gap.is_in_burst) return;
  const auto enough = static_cast<std::int64_t>(mean_cost_ * kDescentGain);
  const bool lasts = tried_ > 2 * kDescentGain * kThousand / max_loss_;
  if (level_ == 0 || gap.before < -enough || lasts) {
    is_descending_ = false;
    has_explored_ = true;
  } else if (gap.after > enough) {
    balance_ = 0;
    move_to(level_ - std::max(1U, level_ / kDescentStep), outstanding);
  }
}

KeepController::Gap KeepController::weigh(Cost cost, std::uint32_t outstanding, bool is_backlogged,
                                          TimePoint now) {
  // What is kept back is missed where it would have been done: behind all that is outstanding. By
  // then perhaps no request waits any more.
  const bool is_kept = std::exchange(kept_, false);
  const bool is_missed = after_keep_ > 0 && left_ > 0;
  after_keep_ = is_kept ? outstanding + 1 : after_keep_ - std::min(after_keep_, 1U);
  Cost due = 0;
  if (is_kept || is_missed || (was_backlogged_ && is_backlogged)) {
    const auto elapsed = static_cast<std::uint64_t>((now - last_).count());
    due =
        static_cast<Cost>(std::min<Wide>(Wide{elapsed} * least_rate_ >> kRateBits, Wide{1} << 60));
  } else {
    // No request is held back, so this is all that there is to do.
    due = cost * (kThousand - max_loss_) / kThousand;
  }
  Gap gap = {.before = balance_, .is_in_burst = due < cost / 2};
  balance_ -= static_cast<std::int64_t>(due);
  gap.after = balance_;
  balance_ += static_cast<std::int64_t>(cost);
  count_second(balance_ - gap.before, outstanding, now);
  return gap;
}

void KeepController::count_second(std::int64_t gain, std::uint32_t outstanding, TimePoint now) {
  const std::int64_t part = now.time_since_epoch() / kPart;
  const auto passed = std::min<std::int64_t>(part - part_, kParts);
  for (std::int64_t i = 0; i < passed; ++i) {
    second_ -= std::exchange(parts_[static_cast<std::size_t>(part - i) % kParts], 0);
  }
  part_ = part;
  parts_[static_cast<std::size_t>(part) % kParts] += gain;
  second_ += gain;
  const std::uint64_t noise =
      mean_cost_ * (2 * std::uint64_t{outstanding} + 1) + reference() / kNoiseInverse;
  has_lost_its_second_ = second_ < -static_cast<std::int64_t>(std::min(noise, kMostNoise));
}

void KeepController::move_to(std::uint32_t level, std::uint32_t outstanding) {
  level_ = level;
  tried_ = 0;
  settling_ = outstanding + kToSettle;
}

}  // namespace vpfs
