#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// Why the head of a queue is held. A queue is what one flow has waiting in one traffic class of one
// Scheduler.
enum class HoldReason : std::uint8_t {
  limit,          // its flow's own limit does not allow it yet
  share,          // then somebody was sent before it, the last one of its own traffic class
  depth,          // the limit allows it, and nobody was sent since: the server has no room
  traffic_class,  // as share, but the last one was of another traffic class
};
inline constexpr std::array kHoldReasons = {HoldReason::limit, HoldReason::share, HoldReason::depth,
                                            HoldReason::traffic_class};

// For how long heads were held, by reason.
struct HoldTimes {
  Duration limit = {};
  Duration share = {};
  Duration depth = {};
  Duration traffic_class = {};

  HoldTimes& operator+=(const HoldTimes& more);
  [[nodiscard]] Duration of(HoldReason reason) const;
  [[nodiscard]] Duration sum() const { return limit + share + depth + traffic_class; }

  bool operator==(const HoldTimes&) const = default;
};

// The HoldTimes of the flows of one policy, each of which has a head or none. Every call is O(1),
// sent() amortised over the heads that there were; allocates in grow() only.
class HoldClock {
 public:
  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  // REQUIRES (all): grow() was called for the flow.
  // The flow's head, which may be new, waits until its limit allows it, or for its turn.
  void wait_for_limit(std::uint32_t flow, TimePoint until, TimePoint now) {
    Row& row = begun(flow, now);
    settle(row, now);
    row.state = State::limited;
    row.mark = until.time_since_epoch();
  }
  void wait_for_turn(std::uint32_t flow, TimePoint now) {
    Row& row = begun(flow, now);
    if (row.state == State::fresh || row.state == State::passed) return;
    if (row.state == State::limited) settle_limit(row, now);
    row.state = State::fresh;
    if (row.listed) return;
    row.listed = true;
    fresh_.push_back(flow);
  }
  // The head left the queue.
  void leave(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    settle(row, now);
    row.state = State::none;
  }

  // A request was chosen to be sent, of this policy or of another traffic class. To be called for
  // every one, before it leaves its queue.
  void sent(bool own, TimePoint now) {
    if (own != own_was_last_) turn(now);
    for (const std::uint32_t flow : fresh_) {
      Row& row = rows_[flow];
      row.listed = false;
      if (row.state != State::fresh) continue;
      settle(row, now);
      row.state = State::passed;
      row.mark = own_time(now);
    }
    fresh_.clear();
  }

  // From now on times of limits are on a clock that is so much ahead of `now`. No limit may move to
  // before `now` by this.
  void set_limit_clock(Duration ahead) { limit_clock_ahead_ = ahead; }

  // Starts from zero with what is queued from now on; forget() is for a flow that ends: it has no
  // times until the next start().
  void start(std::uint32_t flow, TimePoint now);
  void forget(std::uint32_t flow) {
    if (flow < rows_.size()) rows_[flow].counts = false;
  }

  // Since start(), with the wait that goes on. Zero for unknown flows.
  [[nodiscard]] HoldTimes held(std::uint32_t flow, TimePoint now) const;
  void prefetch(std::uint32_t flow) const { __builtin_prefetch(&rows_[flow]); }

  // How many flows wait for the next send to be told of it; never more than there are.
  [[nodiscard]] std::size_t fresh() const { return fresh_.size(); }

 private:
  enum class State : std::uint8_t {
    none,     // no head
    limited,  // until `mark`, on the clock of limits; after that as fresh, nobody was sent since
    fresh,    // nobody was sent since the limit allowed it
    passed,   // somebody was; own_time() was `mark` at `since`
  };
  // Apart from what a policy keeps of a flow, which would outgrow its cache line.
  struct alignas(64) Row {
    HoldTimes times;  // up to `since`
    TimePoint since = {};
    Duration mark = {};
    State state = State::none;
    bool listed = false;  // in fresh_
    bool counts = false;  // between start() and forget()
  };

  Row& begun(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    if (row.state == State::none) row.since = now;
    return row;
  }
  void settle_limit(Row& row, TimePoint now) const {
    const TimePoint until = TimePoint(row.mark - limit_clock_ahead_);
    const TimePoint allowed = std::max(row.since, std::min(until, now));
    row.times.limit += allowed - row.since;
    row.since = allowed;
  }
  // Adds what went by up to now.
  void settle(Row& row, TimePoint now) const {
    if (row.state == State::limited) settle_limit(row, now);
    const Duration passed = now - row.since;
    row.since = now;
    if (row.state != State::passed) {
      row.times.depth += row.state == State::none ? Duration::zero() : passed;
      return;
    }
    const Duration own = own_time(now) - row.mark;
    row.mark += own;
    row.times.share += own;
    row.times.traffic_class += passed - own;
  }
  // For how long the request that was sent last was of this policy, in all.
  [[nodiscard]] Duration own_time(TimePoint now) const {
    return own_was_last_ ? own_time_ + (now - own_since_) : own_time_;
  }
  void turn(TimePoint now) {
    own_time_ = own_time(now);
    own_since_ = now;
    own_was_last_ = !own_was_last_;
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> fresh_;  // flows that may be fresh, each once
  Duration own_time_ = {};            // up to own_since_
  TimePoint own_since_ = {};
  bool own_was_last_ = false;
  Duration limit_clock_ahead_ = {};
};

}  // namespace vpfs
