#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// What a flow did and was entitled to while the data server was crowded.
struct Crowding {
  Duration present = {};        // it had requests queued or at the data server, crowded or not
  Duration in_flight = {};      // of that: the server was crowded
  Duration without_queue = {};  // of that: it had none queued
  double entitled = 0;          // nanoseconds of the server that its weight entitled it to
  Duration crowded = {};        // the server, whatever the flow did
  Cost sent = 0;                // by all flows

  Crowding& operator+=(const Crowding& more);
};

// Measures why flows with weights miss their shares (docs/schedulers.md, "Shares that are missed").
//
// The data server is crowded while the depth holds back a request of the policy. A slot that is
// kept for an expected flow does not count: the flow is not in flight, but the time is its own. A
// flow is in flight while it has requests queued or at the server. While the server is crowded,
// flow f is entitled to w_f / (sum of w_g) of it over the flows g that are in flight.
//
// Only a flow that begins or ends a queue, or comes or goes, touches its row. So a flow that keeps
// a queue costs nothing. Allocates in grow() only. The times are for reports: entitled time is
// floating point.
class CrowdClock {
 public:
  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  // REQUIRES (all): grow() was called for the flow.
  void set_weight(std::uint32_t flow, std::uint32_t weight, TimePoint now);
  // The flow has something queued now, and had nothing before.
  void begin_queue(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    clock_.go_on(now);
    ++queues_;
    if (row.phase == Phase::absent) {
      come(row, now);
    } else {
      row.without_queue += clock_.crowded;
    }
    row.phase = Phase::queued;
  }
  // It has nothing queued any more. `is_at_server`: something else of it is at the server.
  void end_queue(std::uint32_t flow, bool is_at_server, TimePoint now) {
    Row& row = rows_[flow];
    clock_.go_on(now);
    --queues_;
    if (!is_at_server) return go(row, now);
    row.without_queue -= clock_.crowded;
    row.phase = Phase::at_server;
  }
  // It has nothing at the server any more, and nothing queued.
  void leave(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    clock_.go_on(now);
    row.without_queue += clock_.crowded;
    go(row, now);
  }

  // Fetches what is known of a flow into the cache.
  void prefetch(std::uint32_t flow) const { __builtin_prefetch(&rows_[flow]); }

  // Whether requests are held back from now on, if any are queued.
  void set_holding(bool holds_back, TimePoint now) {
    const bool is_crowded = holds_back && queues_ > 0;
    if (is_crowded == clock_.is_crowded) return;
    clock_.go_on(now);
    clock_.is_crowded = is_crowded;
  }
  // A request was sent that the last set_holding() was about.
  void sent(Cost cost) { sent_ += clock_.is_crowded ? cost : 0; }

  // Since the beginning, up to now. Zero for unknown flows.
  [[nodiscard]] Crowding crowding(std::uint32_t flow, TimePoint now) const;

 private:
  enum class Phase : std::uint8_t {
    absent,
    at_server,  // nothing is queued
    queued,
  };
  // The beginning of a phase takes the clocks off the counters, and its end adds them.
  struct alignas(64) Row {
    Duration present = {};
    Duration in_flight = {};
    Duration without_queue = {};
    double entitled = 0;
    std::uint32_t weight = 1;
    Phase phase = Phase::absent;
  };
  struct Clock {
    std::uint64_t in_flight_weight = 0;
    bool is_crowded = false;
    TimePoint last = {};
    Duration crowded = {};
    // Crowded nanoseconds for each unit of weight in flight, up to shared_at of `crowded`.
    double share = 0;
    Duration shared_at = {};

    void go_on(TimePoint now) {
      if (is_crowded) crowded += now - last;
      last = now;
    }
    // Called before the weight in flight changes.
    void share_on() {
      const Duration passed = crowded - shared_at;
      shared_at = crowded;
      if (passed == Duration::zero() || in_flight_weight == 0) return;
      share += static_cast<double>(passed.count()) / static_cast<double>(in_flight_weight);
    }
  };

  void come(Row& row, TimePoint now) {
    clock_.share_on();
    clock_.in_flight_weight += row.weight;
    row.present -= now.time_since_epoch();
    row.in_flight -= clock_.crowded;
    row.entitled -= clock_.share * row.weight;
  }
  void go(Row& row, TimePoint now) {
    clock_.share_on();
    clock_.in_flight_weight -= row.weight;
    row.present += now.time_since_epoch();
    row.in_flight += clock_.crowded;
    row.entitled += clock_.share * row.weight;
    row.phase = Phase::absent;
  }

  std::vector<Row> rows_;
  Clock clock_;
  std::uint32_t queues_ = 0;  // flows with something queued
  Cost sent_ = 0;             // while crowded
};

}  // namespace vpfs
