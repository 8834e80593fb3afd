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
// The data server is crowded while the depth, or a slot that is kept, holds back a request of the
// policy. A flow is in flight while it has requests queued or at the server. While the server is
// crowded, flow f is entitled to w_f / (sum of w_g) of it over the flows g that are in flight.
//
// Only a flow that begins or ends a queue, or comes or goes, touches its row. So a flow that keeps
// a queue costs nothing. Allocates in grow() only. The times are for reports: entitled time is
// floating point.
class CrowdClock {
 public:
  enum class Phase : std::uint8_t {
    absent,
    at_server,  // nothing is queued
    queued,
  };

  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  // REQUIRES (all): grow() was called for the flow.
  void set_weight(std::uint32_t flow, std::uint32_t weight, TimePoint now);
  void enter(std::uint32_t flow, Phase phase, TimePoint now) {
    Row& row = rows_[flow];
    if (row.phase == phase) return;
    clock_.go_on(now);
    clock_.settle(row);
    if (row.phase == Phase::absent) come(row, now);
    if (phase == Phase::absent) go(row, now);
    row.phase = phase;
  }

  // Whether a request is held back from now on.
  void set_crowded(bool is_crowded, TimePoint now) {
    if (is_crowded == clock_.is_crowded) return;
    clock_.go_on(now);
    clock_.is_crowded = is_crowded;
  }
  // A request was sent that the last set_crowded() was about.
  void sent(Cost cost) { sent_ += clock_.is_crowded ? cost : 0; }

  // Since the beginning, up to now. Zero for unknown flows.
  [[nodiscard]] Crowding crowding(std::uint32_t flow, TimePoint now) const;

 private:
  struct alignas(64) Row {
    Duration present = {};  // less the time at which it came, while it is present
    Duration in_flight = {};
    Duration without_queue = {};
    double entitled = 0;
    // Of the clock, when the row was settled.
    Duration crowded_at = {};
    double share_at = 0;
    std::uint32_t weight = 1;
    Phase phase = Phase::absent;
  };

  // What is the same for all flows.
  struct Clock {
    std::uint64_t in_flight_weight = 0;
    bool is_crowded = false;
    TimePoint last = {};
    Duration crowded = {};
    double share = 0;  // crowded nanoseconds for each unit of weight in flight

    void go_on(TimePoint now) {
      const Duration passed = now - last;
      last = now;
      if (!is_crowded) return;
      crowded += passed;
      if (in_flight_weight == 0) return;
      share += static_cast<double>(passed.count()) / static_cast<double>(in_flight_weight);
    }
    void settle(Row& row) const {
      const Duration passed = crowded - row.crowded_at;
      if (row.phase != Phase::absent) {
        row.in_flight += passed;
        row.entitled += (share - row.share_at) * row.weight;
      }
      if (row.phase == Phase::at_server) row.without_queue += passed;
      row.crowded_at = crowded;
      row.share_at = share;
    }
  };

  void come(Row& row, TimePoint now) {
    clock_.in_flight_weight += row.weight;
    row.present -= now.time_since_epoch();
  }
  void go(Row& row, TimePoint now) {
    clock_.in_flight_weight -= row.weight;
    row.present += now.time_since_epoch();
  }

  std::vector<Row> rows_;
  Clock clock_;
  Cost sent_ = 0;  // while crowded
};

}  // namespace vpfs
