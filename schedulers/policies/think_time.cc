#include "schedulers/policies/think_time.h"

#include <utility>

namespace vpfs {

bool ThinkTime::returned(TimePoint now) {
  // Clients that have gone never send a successor.
  while (thinking_ > 1 && is_known_ && age(now) > limit()) {
    forget_oldest();
    if (!is_given_up_) lose_trust();
    is_given_up_ = false;
  }
  const Duration took = age(now);
  forget_oldest();
  const bool was_given_up = std::exchange(is_given_up_, false);
  const bool in_time = is_known_ && took <= limit() && !was_given_up;
  const bool is_awaited = is_known_ && took <= kLongest;
  const bool had_trust = is_trusted();
  // A long pause moves the estimate no further than the first late moment does.
  learn(is_known_ ? std::min(took, limit()) : took);
  if (in_time) {
    trust_ = static_cast<std::int8_t>(std::min(trust_ + 1, int{kMostTrust}));
  } else if (!was_given_up) {
    lose_trust();
  }
  return is_awaited && had_trust;
}

void ThinkTime::forget_all_but_newest() {
  while (thinking_ > 1) forget_oldest();
  is_given_up_ = false;
  serial_ = 0;
}

void ThinkTime::learn(Duration took) {
  if (!is_known_) {
    is_known_ = true;
    mean_ = took;
    spread_ = took / 2;
    return;
  }
  const Duration error = took - mean_;
  mean_ += error / 8;
  spread_ += (std::chrono::abs(error) - spread_) / 4;
}

void ThinkTime::answered(Duration response, bool counts, TimePoint now) {
  if (counts) {
    const bool is_shorter = shortest_ == Duration::zero() || response < shortest_;
    shortest_ = is_shorter ? response : shortest_ + (response - shortest_) / 256;
  }
  // It falls fast: a burst of others that made it long is over when the next request comes.
  const Duration error = response - response_;
  response_ += error < Duration::zero() ? error / 2 : error / 8;
  if (thinking_ == kMostThinking) forget_oldest();
  answers_[(first_ + thinking_) % kMostThinking] = tick_of(now);
  ++thinking_;
}

void ThinkTime::gave_up(TimePoint now) {
  if (thinking_ == 0) return;  // the data server is late, not the flow
  if (!is_given_up_) lose_trust();
  is_given_up_ = true;
  while (thinking_ > 1 && age(now) > limit()) forget_oldest();
}

}  // namespace vpfs
