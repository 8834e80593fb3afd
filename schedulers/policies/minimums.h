#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/divider.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/request.h"
#include "schedulers/time_tag.h"

namespace vpfs {

// The minimums of flows: the tags R of [MCLOCK] (docs/schedulers.md, "Minimums").
//
//   R(r) = R_prev + size_prev / min, and not before the arrival that ended an idle time
//
// Allocates in grow() and set() only.
class Minimums {
 public:
  // How far behind its minimum a flow may be and still catch up.
  static constexpr Duration kMostDebt = std::chrono::seconds(1);

  // `rate`: bytes each second, not zero. `flows`: that are known.
  void set(std::uint32_t flow, std::uint64_t rate, std::size_t flows, TimePoint now) {
    by_time_.grow(flows);
    if (flow >= rows_.size()) rows_.resize(std::size_t{flow} + 1);
    rows_[flow] = {.rate = Divider(rate), .due = now};
  }
  // REQUIRES (all of the flow): it has a minimum.
  // A request came after an idle time.
  void arrived(std::uint32_t flow, TimePoint arrival) {
    rows_[flow].due = std::max(rows_[flow].due, arrival);
  }
  // The flow's head waits for R, and for its limit.
  void put(std::uint32_t flow, const IoRequest& head, TimePoint allowed) {
    const TimePoint due = std::max(rows_[flow].due, allowed);
    by_time_.put(flow, {.tag = time_tag(due), .order = head.order});
  }
  void erase(std::uint32_t flow) { by_time_.erase(flow); }
  // The head was sent; the next one has to be put, or the flow to be erased.
  void served(std::uint32_t flow, const IoRequest& request, TimePoint now) {
    Row& row = rows_[flow];
    // A request without bytes (metadata) counts by its cost.
    const Duration spacing =
        time_for(request.size.count > 0 ? request.size.count : request.cost, row.rate);
    row.due = std::clamp(row.due, now - std::max(spacing, kMostDebt), now) + spacing;
  }

  [[nodiscard]] bool is_due(TimePoint now) const {
    return !by_time_.empty() && time_of(by_time_.top_tag()) <= now;
  }
  // The flow with the smallest R. REQUIRES: is_due() some time.
  [[nodiscard]] std::uint32_t top() const { return by_time_.top(); }
  // Fetches what is known of a flow into the cache, if it has a minimum.
  void prefetch(std::uint32_t flow) const {
    if (flow >= rows_.size()) return;
    __builtin_prefetch(&rows_[flow]);
    by_time_.prefetch(flow);
  }
  [[nodiscard]] const FlowTournament& by_time() const { return by_time_; }
  // R of the flow's next request, for a successor.
  [[nodiscard]] TimePoint due(std::uint32_t flow) const { return rows_[flow].due; }
  void set_due(std::uint32_t flow, TimePoint due) { rows_[flow].due = due; }

 private:
  struct Row {
    Divider rate{1};
    TimePoint due = {};  // R of the next request
  };

  std::vector<Row> rows_;   // by flow, up to the last one with a minimum
  FlowTournament by_time_;  // backlogged flows with a minimum, by R, but not before their limit
};

}  // namespace vpfs
