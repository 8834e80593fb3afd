#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// When the next request of one flow comes. An application with few requests in flight sends the
// next one some time after an answer: its think time, which the network and the client take. The
// estimate is that of TCP's retransmission timer [JACOBSON]: a mean and a mean deviation, which
// follow the last few requests.
//
// A request is taken for the successor of the oldest answer that has none yet. With one request in
// flight that is so; with several the mean is right all the same.
//
// A flow that does not come back by latest() loses trust, and has to come back in time as often as
// kLost says for each miss until it has it again. A new flow begins without trust, too.
class alignas(64) ThinkTime {
 public:
  // Answers without a successor that are remembered.
  static constexpr std::uint32_t kMostThinking = 16;
  // What takes longer to come back, the spread included, is not waited for.
  static constexpr Duration kLongest = std::chrono::milliseconds(100);
  static constexpr std::uint8_t kLost = 4;
  static constexpr std::uint8_t kMostLost = 64;

  // A request came; `in_flight` counts it. True: in time, and the flow is trusted.
  bool arrived(std::uint32_t in_flight, TimePoint now) {
    most_in_flight_ = std::max(most_in_flight_, in_flight);
    return thinking_ > 0 && returned(now);
  }
  // A request was sent to the data server.
  void sent(TimePoint now) { last_sent_ = now; }
  // It was answered `response` after it was sent. The shortest one lately is what the flow's
  // requests take alone, if `counts`.
  void answered(Duration response, bool counts, TimePoint now);
  // Nothing came until latest().
  void gave_up(TimePoint now);

  [[nodiscard]] bool is_trusted() const { return distrust_ == 0 && limit() <= kLongest; }
  // When the next request comes at the earliest, as a rule, and when at the latest. `outstanding`
  // requests of the flow are at the data server. REQUIRES: it has been sent one.
  [[nodiscard]] TimePoint earliest(std::uint32_t outstanding, TimePoint now) const {
    return begin_of_next(outstanding, now) + std::max(mean_ - spread_, Duration::zero());
  }
  [[nodiscard]] TimePoint latest(std::uint32_t outstanding, TimePoint now) const {
    const Duration answer = thinking_ > 0 ? Duration::zero() : response_;
    return begin_of_next(outstanding, now) + limit() + answer;
  }

  [[nodiscard]] bool is_known() const { return is_known_; }
  [[nodiscard]] Duration mean() const { return mean_; }
  [[nodiscard]] Duration spread() const { return spread_; }
  [[nodiscard]] std::uint32_t most_in_flight() const { return most_in_flight_; }
  // Answers that have no successor yet.
  [[nodiscard]] std::uint32_t thinking() const { return thinking_; }
  // How long a request and the thinking after it take if nobody else is there; the response is
  // taken for nothing until one counted.
  [[nodiscard]] Duration alone() const { return mean_ + shortest_; }

 private:
  // Times of answers are kept in units of 64 ns, modulo 2^32 (275 s).
  static constexpr int kTickBits = 6;
  static constexpr Duration kSlack = std::chrono::microseconds(20);

  [[nodiscard]] static std::uint32_t tick_of(TimePoint time) {
    return static_cast<std::uint32_t>(time.time_since_epoch().count() >> kTickBits);
  }
  // Since the oldest answer without a successor. REQUIRES: there is one.
  [[nodiscard]] Duration age(TimePoint now) const {
    const std::uint32_t ticks = tick_of(now) - answers_[first_];
    return Duration(std::int64_t{ticks} << kTickBits);
  }
  // For how long a flow that was answered is expected.
  [[nodiscard]] Duration limit() const { return mean_ + mean_ / 4 + 4 * spread_ + kSlack; }
  // When the thinking that ends next begins.
  [[nodiscard]] TimePoint begin_of_next(std::uint32_t outstanding, TimePoint now) const {
    if (thinking_ > 0) return now - age(now);
    // The oldest of several is a part of their way ahead of the last one.
    return last_sent_ + response_ / std::max(outstanding, 1U);
  }
  bool returned(TimePoint now);
  void learn(Duration took);
  void forget_oldest() {
    first_ = static_cast<std::uint8_t>((first_ + 1) % kMostThinking);
    --thinking_;
  }
  void lose_trust() {
    distrust_ = static_cast<std::uint8_t>(std::min<int>(distrust_ + kLost, kMostLost));
  }

  std::array<std::uint32_t, kMostThinking> answers_ = {};  // a ring, oldest at first_
  Duration mean_ = {};
  Duration spread_ = {};
  Duration response_ = {};  // mean time at the data server
  Duration shortest_ = {};  // about the shortest time lately; 0: not known
  TimePoint last_sent_ = {};
  std::uint32_t most_in_flight_ = 0;
  std::uint8_t first_ = 0;
  std::uint8_t thinking_ = 0;
  std::uint8_t distrust_ = kLost;
  bool is_known_ = false;
  bool is_given_up_ = false;  // the oldest answer: its miss is counted
};
static_assert(sizeof(ThinkTime) == 128);

}  // namespace vpfs
