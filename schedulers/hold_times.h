#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// Why the head of a queue is held. A queue has the waiting requests of one flow in one traffic
// class of one Scheduler.
enum class HoldReason : std::uint8_t {
  limit,          // its flow's own limit does not allow it yet
  share,          // the limit allows it; the last request sent was of its own traffic class
  kept_slot,      // as share, but since that request a slot was kept for another flow
  depth,          // the limit allows it and nothing of that was since: the server has no room
  traffic_class,  // as share, but the last request sent was of another traffic class
};
inline constexpr std::array kHoldReasons = {HoldReason::limit, HoldReason::share,
                                            HoldReason::kept_slot, HoldReason::depth,
                                            HoldReason::traffic_class};

// For how long heads were held, by reason.
struct HoldTimes {
  Duration limit = {};
  Duration share = {};
  Duration kept_slot = {};
  Duration depth = {};
  Duration traffic_class = {};

  HoldTimes& operator+=(const HoldTimes& more) {
    limit += more.limit;
    share += more.share;
    kept_slot += more.kept_slot;
    depth += more.depth;
    traffic_class += more.traffic_class;
    return *this;
  }
  [[nodiscard]] HoldTimes operator-(const HoldTimes& other) const {
    return {.limit = limit - other.limit,
            .share = share - other.share,
            .kept_slot = kept_slot - other.kept_slot,
            .depth = depth - other.depth,
            .traffic_class = traffic_class - other.traffic_class};
  }
  [[nodiscard]] Duration of(HoldReason reason) const;
  template <typename Archive>
  void archive(Archive& fields) {
    fields("limit", limit);
    fields("share", share);
    fields("kept_slot", kept_slot);
    fields("depth", depth);
    fields("traffic_class", traffic_class);
  }
  [[nodiscard]] Duration sum() const { return limit + share + kept_slot + depth + traffic_class; }

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

  // A request of this policy, or of another traffic class, was chosen to be sent. Called for every
  // such request before it leaves its queue.
  void sent(bool own, TimePoint now) { pass(own ? Last::own : Last::other, now); }

  // A request of this policy that has room is kept back for another flow of it. Until a request is
  // sent this is as if the other one's had been.
  void kept_back(TimePoint now) { pass(Last::kept_slot, now); }

  // Times of limits are from now on by a clock that is `ahead` of `now`. REQUIRES: no limit moves
  // to before `now`.
  void set_limit_clock(Duration ahead) { limit_clock_ahead_ = ahead; }

  // start() counts from zero, with the requests that are queued now. forget() ends the times of a
  // flow until the next start().
  void start(std::uint32_t flow, TimePoint now);
  void forget(std::uint32_t flow) {
    if (flow < rows_.size()) rows_[flow].counts = false;
  }

  // Since start(), with the wait that goes on. Zero for unknown flows.
  [[nodiscard]] HoldTimes held(std::uint32_t flow, TimePoint now) const {
    if (flow >= rows_.size() || !rows_[flow].counts) return {};
    Row row = rows_[flow];
    end_state(row, now);
    return {.limit = row.limit,
            .share = row.passed[std::to_underlying(Last::own)],
            .kept_slot = row.passed[std::to_underlying(Last::kept_slot)],
            .depth = row.depth,
            .traffic_class = row.passed[std::to_underlying(Last::other)]};
  }
  void prefetch(std::uint32_t flow) const { __builtin_prefetch(&rows_[flow]); }

  // How many flows wait to be told of the next send; never more than there are flows.
  [[nodiscard]] std::size_t fresh() const { return fresh_count_; }

 private:
  enum class State : std::uint8_t {
    none,     // no head
    limited,  // until `until`; then like fresh
    fresh,    // nothing was sent, or kept back, since the limit allowed it
    passed,   // something was
  };
  // What the last event was.
  enum class Last : std::uint8_t { own, kept_slot, other };
  // For how long, in total, it was each of them.
  using Totals = std::array<Duration, 3>;
  // Kept apart from the policy's own flow, which would outgrow its cache line. The beginning of a
  // state takes the time off the state's counter, and its end adds the time.
  struct alignas(64) Row {
    Duration limit = {};
    Duration depth = {};
    Totals passed = {};    // what HoldTimes calls share, kept_slot and traffic_class
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
      // Without a copy of the totals with `now` in it: a processor waits when it loads several
      // numbers at once of which one was just stored.
      for (std::size_t last = 0; last < totals_.size(); ++last) {
        row.passed[last] += totals_[last] * sign;
      }
      row.passed[std::to_underlying(last_)] += time;
    } else if (row.state == State::fresh) {
      row.depth += time;
    } else if (row.state == State::limited) {
      row.limit += time;
    }
  }
  void pass(Last last, TimePoint now) {
    if (last != last_) {
      totals_[std::to_underlying(last_)] += now.time_since_epoch();
      totals_[std::to_underlying(last)] -= now.time_since_epoch();
      last_ = last;
    }
    for (; fresh_count_ > 0; --fresh_count_) {
      Row& row = rows_[fresh_[fresh_count_ - 1]];
      row.listed = false;
      if (row.state != State::fresh) continue;
      row.depth += now.time_since_epoch();
      begin_state(row, State::passed, now);
    }
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> fresh_;  // first the flows that may be fresh, each once
  std::size_t fresh_count_ = 0;
  Totals totals_ = {};  // that of last_ lacks the time of now
  Last last_ = Last::other;
  Duration limit_clock_ahead_ = {};
};

}  // namespace vpfs
