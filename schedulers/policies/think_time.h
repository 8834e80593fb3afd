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
// flight that is so; with several the mean is right all the same. A flow that had several and has
// one now leaves answers without a successor. They would make every think time some turns too long
// for ever, since their age stays within what is learned from it. So after kSerial requests that
// each came alone only the newest answer counts. If the others have successors after all, these are
// not counted, and their own answers are.
//
// A flow that comes back in time gains trust, and one that does not loses kLost times as much: a
// flow that misses more than one time of five is never trusted for long. A new flow begins without
// trust. Every client is late at times, though: some other program had its processor, or it began
// its next file. A flow with a good record stays trusted, and keeps its place in the order if it
// comes within kLongest.
class alignas(64) ThinkTime {
 public:
  // Answers without a successor that are remembered.
  static constexpr std::uint32_t kMostThinking = 16;
  // What takes longer to come back, the spread included, is not waited for.
  static constexpr Duration kLongest = std::chrono::milliseconds(100);
  static constexpr std::int8_t kLost = 4;
  static constexpr std::int8_t kMostLost = 64;
  static constexpr std::int8_t kMostTrust = 8;
  static constexpr std::uint8_t kSerial = 64;
  // A flow is late after one limit(). After so many, or after kLongest, it is given up.
  static constexpr int kPatience = 8;

  // A request came; `in_flight` counts it. True: the flow is trusted and came within kLongest.
  bool arrived(std::uint32_t in_flight, TimePoint now) {
    most_in_flight_ = std::max(most_in_flight_, in_flight);
    if (in_flight > 1 || thinking_ <= 1) {
      serial_ = 0;
    } else if (++serial_ == kSerial) {
      forget_all_but_newest();
    }
    return thinking_ > 0 && returned(now);
  }
  // A request was sent to the data server, which has work for the time `ahead` before it.
  void sent(Duration ahead, TimePoint now) {
    last_sent_ = now;
    predicted_ = shortest_ > Duration::zero() ? shortest_ + ahead : response_;
  }
  // It was answered `response` after it was sent. The shortest one lately is what the flow's
  // requests take alone, if `counts`.
  void answered(Duration response, bool counts, TimePoint now);
  // Nothing came until given_up_at().
  void gave_up(TimePoint now);

  // Whether arrived() would be true now, or may be later.
  [[nodiscard]] bool may_return(TimePoint now) const {
    return is_trusted() && (thinking_ == 0 || age(now) <= kLongest);
  }
  [[nodiscard]] bool is_trusted() const { return trust_ >= 0 && limit() <= kLongest; }
  // When the next request comes at the earliest, as a rule; from when it is late; and when it is
  // not waited for any more. `outstanding` requests of the flow are at the data server. REQUIRES:
  // it has been sent one.
  [[nodiscard]] TimePoint earliest(std::uint32_t outstanding, TimePoint now) const {
    const Duration response = std::min(response_, predicted_);
    return begin_of_next(response, outstanding, now) + std::max(mean_ - spread_, Duration::zero());
  }
  [[nodiscard]] TimePoint latest(std::uint32_t outstanding, TimePoint now) const {
    return after_answer(limit(), outstanding, now);
  }
  [[nodiscard]] TimePoint given_up_at(std::uint32_t outstanding, TimePoint now) const {
    return after_answer(patience(), outstanding, now);
  }

  [[nodiscard]] bool is_known() const { return is_known_; }
  [[nodiscard]] Duration mean() const { return mean_; }
  [[nodiscard]] Duration spread() const { return spread_; }
  [[nodiscard]] std::uint32_t most_in_flight() const { return most_in_flight_; }
  // Answers that have no successor yet.
  [[nodiscard]] std::uint32_t thinking() const { return thinking_; }
  // How long a request and the thinking after it take if no other flow is there; the response is
  // taken for zero until one counted.
  [[nodiscard]] Duration alone() const { return mean_ + shortest_; }

  template <typename Archive>
  void archive(Archive& fields) {
    fields("answers", answers_);
    fields("mean", mean_);
    fields("spread", spread_);
    fields("response", response_);
    fields("predicted", predicted_);
    fields("shortest", shortest_);
    fields("last_sent", last_sent_);
    fields("most_in_flight", most_in_flight_);
    fields("first", first_);
    fields("thinking", thinking_);
    fields("trust", trust_);
    fields("serial", serial_);
    fields("is_known", is_known_);
    fields("is_given_up", is_given_up_);
    if constexpr (Archive::kReads) {
      first_ %= kMostThinking;
      thinking_ = std::min<std::uint8_t>(thinking_, kMostThinking);
      trust_ = std::clamp<std::int8_t>(trust_, -kMostLost, kMostTrust);
    }
  }

 private:
  // Times of answers are kept in units of 64 ns, modulo 2^32 (275 s).
  static constexpr int kTickBits = 6;
  static constexpr auto kNearlyWrapped = Duration(std::int64_t{1} << (31 + kTickBits));
  static constexpr Duration kSlack = std::chrono::microseconds(20);

  [[nodiscard]] static std::uint32_t tick_of(TimePoint time) {
    return static_cast<std::uint32_t>(time.time_since_epoch().count() >> kTickBits);
  }
  [[nodiscard]] static TimePoint time_of_tick(TimePoint within) {
    constexpr std::int64_t kTick = std::int64_t{1} << kTickBits;
    return within - Duration(within.time_since_epoch().count() & (kTick - 1));
  }
  // Since the oldest answer without a successor. REQUIRES: there is one.
  [[nodiscard]] Duration age(TimePoint now) const {
    // The answer came after its request was sent. So an age that has wrapped is known.
    if (const Duration most = now - last_sent_; most > kNearlyWrapped) return most;
    const std::uint32_t ticks = tick_of(now) - answers_[first_];
    return Duration(std::int64_t{ticks} << kTickBits);
  }
  // For how long a flow that was answered is expected. To wait a little longer for one that is late
  // costs far less than what then goes before it.
  [[nodiscard]] Duration limit() const { return 2 * mean_ + 4 * spread_ + kSlack; }
  [[nodiscard]] Duration patience() const { return std::min(kPatience * limit(), kLongest); }
  // When the thinking that ends next begins.
  [[nodiscard]] TimePoint begin_of_next(Duration response, std::uint32_t outstanding,
                                        TimePoint now) const {
    if (thinking_ > 0) return time_of_tick(now) - age(now);  // the same whenever it is asked
    // The oldest of several is a part of their way ahead of the last one.
    return last_sent_ + response / std::max(outstanding, 1U);
  }
  [[nodiscard]] TimePoint after_answer(Duration wait, std::uint32_t outstanding,
                                       TimePoint now) const {
    const Duration response = std::max(response_, predicted_);
    const Duration answer = thinking_ > 0 ? Duration::zero() : response;
    return begin_of_next(response, outstanding, now) + wait + answer;
  }
  bool returned(TimePoint now);
  void learn(Duration took);
  void forget_oldest() {
    first_ = static_cast<std::uint8_t>((first_ + 1) % kMostThinking);
    --thinking_;
  }
  void forget_all_but_newest();
  void lose_trust() { trust_ = static_cast<std::int8_t>(std::max(trust_ - kLost, -kMostLost)); }

  std::array<std::uint32_t, kMostThinking> answers_ = {};  // a ring, oldest at first_
  Duration mean_ = {};
  Duration spread_ = {};
  // Time at the data server: a mean that is soon as short as the last ones, and the prediction for
  // the last request.
  Duration response_ = {};
  Duration predicted_ = {};
  Duration shortest_ = {};  // about the shortest time lately; 0: not known
  TimePoint last_sent_ = {};
  std::uint32_t most_in_flight_ = 0;
  std::uint8_t first_ = 0;
  std::uint8_t thinking_ = 0;
  std::int8_t trust_ = -kLost;
  std::uint8_t serial_ = 0;  // requests in a row that came alone while several answers waited
  bool is_known_ = false;
  bool is_given_up_ = false;  // the oldest answer: its miss is counted
};
static_assert(sizeof(ThinkTime) == 128);

}  // namespace vpfs
