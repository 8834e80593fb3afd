#pragma once

#include <cstdint>

#include "schedulers/flow_tournament.h"

namespace vpfs {

// Fetches into the cache what a policy will touch for the flows that it serves next
// (docs/decisions/0075-fetched-ahead.md).
//
// What few flows need is in some cache; the first flow's is brought into the nearest one. What many
// flows need is in memory, which takes as long as several requests. So a flow that comes soon goes
// through three stages, one with each request that is sent: its rows; its head, whose address is in
// a row; the request behind the head.
class FetchAhead {
  struct Nothing {
    void operator()(std::uint32_t /*flow*/) const {}
  };

 public:
  // `moved` was the first flow of the order, and is elsewhere in it now, or nowhere. `flows`: the
  // FlowTable. `rows` fetches all rows of a flow; `last` what is needed besides when the head is
  // the last one in its queue.
  template <typename Flows, typename Rows, typename Last = Nothing>
  void after(std::uint32_t moved, const FlowTournament& order, const Flows& flows, Rows rows,
             Last last = {}) {
    if (order.empty()) return;
    if (!order.has_many()) return rows(order.top());
    if (!flows.prefetch_behind_head(with_head_)) last(with_head_);
    flows.prefetch_head(with_rows_);
    with_head_ = with_rows_;
    with_rows_ = order.coming_after(moved);
    rows(with_rows_);
  }

 private:
  std::uint32_t with_rows_ = 0;  // its rows were fetched
  std::uint32_t with_head_ = 0;  // its head was fetched as well
};

}  // namespace vpfs
