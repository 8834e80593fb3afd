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
    Row& row = rows_[flow];
    end_state(row, now);
    begin_state(row, State::limited, now);
    row.until = until;
  }
  void wait_for_turn(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    if (row.state == State::fresh || row.state == State::passed) return;
    begin_state(row, State::fresh, row.state == State::limited ? end_limit(row, now) : now);
    if (row.listed) return;
    row.listed = true;
    fresh_[fresh_count_++] = flow;
  }
  // The head left the queue.
  void leave(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    end_state(row, now);
    row.state = State::none;
  }

  // A request was chosen to be sent, of this policy or of another traffic class. To be called for
  // every one, before it leaves its queue.
  void sent(bool own, TimePoint now) {
    if (own != own_was_last_) turn(now);
    for (; fresh_count_ > 0; --fresh_count_) {
      Row& row = rows_[fresh_[fresh_count_ - 1]];
      row.listed = false;
      if (row.state != State::fresh) continue;
      end_state(row, now);
      begin_state(row, State::passed, now);
    }
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
  [[nodiscard]] std::size_t fresh() const { return fresh_count_; }

 private:
  enum class State : std::uint8_t {
    none,     // no head
    limited,  // until `until`; after that as fresh, since nobody was sent then
    fresh,    // nobody was sent since the limit allowed it
    passed,   // somebody was
  };
  // Apart from what a policy keeps of a flow, which would outgrow its cache line. When a state
  // begins the time is taken off what the state counts as, and added when it ends.
  struct alignas(64) Row {
    HoldTimes times;
    TimePoint until = {};  // on the clock of limits
    State state = State::none;
    bool listed = false;  // in fresh_
    bool counts = false;  // between start() and forget()
  };

  void begin_state(Row& row, State state, TimePoint now) const {
    row.state = state;
    add(row, now, -1);
  }
  void end_state(Row& row, TimePoint now) const {
    if (row.state == State::limited) {
      begin_state(row, State::fresh, end_limit(row, now));
    }
    add(row, now, 1);
  }
  // Since when the head is fresh, or would be at `now`.
  TimePoint end_limit(Row& row, TimePoint now) const {
    const TimePoint allowed = std::min(row.until - limit_clock_ahead_, now);
    add(row, allowed, 1);
    return allowed;
  }
  void add(Row& row, TimePoint now, int sign) const {
    const Duration time = now.time_since_epoch() * sign;
    if (row.state == State::passed) {
      const Duration own = own_time(now) * sign;
      row.times.share += own;
      row.times.traffic_class += time - own;
    } else if (row.state == State::fresh) {
      row.times.depth += time;
    } else if (row.state == State::limited) {
      row.times.limit += time;
    }
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
  std::vector<std::uint32_t> fresh_;  // the first of them: flows that may be fresh, each once
  std::size_t fresh_count_ = 0;
  Duration own_time_ = {};  // up to own_since_
  TimePoint own_since_ = {};
  bool own_was_last_ = false;
  Duration limit_clock_ahead_ = {};
};

}  // namespace vpfs
