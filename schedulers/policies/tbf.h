#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedulers/fetch_ahead.h"
#include "schedulers/flow_table.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/rate_limits.h"

namespace vpfs {

// Classful token buckets [TBF]. Every flow is a class; its requests go first come first served,
// each when the buckets of its limits hold its tokens. The deadline of a class is the time when its
// head may go:
//
//   - a class whose deadline has come is due. Due classes go by lowest rank, then earliest
//     deadline, then earliest arrival. With a `slice`, the lowest place goes first among classes of
//     one rank whose deadlines are in the same slice of time;
//   - classes without a limit are served when no class is due, first come first served over all of
//     them. A coordinator's limit (set_limits()) holds any class back, but changes no order;
//   - no other class may go: the policy is not work conserving, by design.
class Tbf final : public Policy {
 public:
  static const PolicyKind kKind;

  // `limits` outlives the policy; another one of the same flows may use them too.
  // `slice` is at least kShortestSlice, and is rounded down to a power of two of 1024 ns; zero:
  // places mean nothing.
  explicit Tbf(RateLimits& limits, Duration slice = Duration::zero(), RateLimits::User user = 0);
  static constexpr Duration kShortestSlice = std::chrono::microseconds(100);

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void let_pass(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  [[nodiscard]] bool set_limits(AppId app, const Limits& limits, TimePoint now) override;
  void prefetch_rows(AppId app) const override {
    flows_.prefetch(std::to_underlying(app));
    limits_.prefetch_all(std::to_underlying(app));
  }
  void prefetch_head(AppId app) const override { flows_.prefetch_head(std::to_underlying(app)); }
  // All that it knows of a flow is in its limits, which are restored before.
  void restore(AppId app, const SavedState& /*from*/, TimePoint now) override {
    if (std::to_underlying(app) < flows_.size()) limits_changed(app, now);
  }
  [[nodiscard]] HoldClock& holds() override { return flows_.holds(); }
  // The head with the earliest deadline among those that may not go yet; nullptr: there is none. It
  // may be dispatched without its tokens if head() has no request; the flow keeps the tokens.
  [[nodiscard]] IoRequest* earliest_waiting() const;
  void dispatch_without_tokens(IoRequest& request, TimePoint now);
  // 0 ... Share::kMaxRank; 0 until it is called. REQUIRES: set_share() has been called for the
  // flow.
  void set_place(AppId app, std::uint8_t place, TimePoint now);
  // Must be called after the limits of a flow were changed from outside.
  void limits_changed(AppId app, TimePoint now);

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override {
    return flows_.some_head({&ready_, &waiting_});
  }
  [[nodiscard]] FlowState flow(AppId app) const override { return flows_.state(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override {
    return limits_.report(app, now);
  }

 private:
  struct alignas(32) Flow : FlowQueue {
    std::uint8_t rank = 0;
    std::uint8_t place = 0;
    bool in_backlog = false;  // the limits know of the queue's backlog
    bool is_ready = false;    // in ready_
    bool is_waiting = false;  // in waiting_
  };
  static_assert(sizeof(Flow) == 32);

  [[nodiscard]] std::uint64_t due_tag(const Flow& flow, TimePoint deadline) const;
  // When the flow's limits allow its head. REQUIRES: it has one.
  [[nodiscard]] TimePoint allowed_at(std::uint32_t index, TimePoint now) {
    const IoRequest& head = *flows_[index].queue.front();
    if (!limits_.is_allocated(head.app)) return limits_.allowed_at(head, user_, now);
    return limits_.allowed_by_both_at(head, flows_.oldest_arrival(index), user_, now);
  }
  void place(std::uint32_t index, TimePoint now);
  void put_into_ready(Flow& flow, std::uint32_t index, FlowTournament::Key key, TimePoint now);
  void put_into_waiting(Flow& flow, std::uint32_t index, FlowTournament::Key key);
  void take_out(Flow& flow, std::uint32_t index);
  void prefetch_rows_of(std::uint32_t index) const;
  void place_due(TimePoint now);
  void tell_backlog(std::uint32_t index, TimePoint now);
  void leave(IoRequest& request, TimePoint now);

  RateLimits& limits_;
  RateLimits::User user_;  // of the limits
  int slice_bits_;         // of a deadline in units of 1024 ns; zero: no slices
  FlowTable<Flow, true> flows_;
  FlowTournament
      ready_;  // due classes by rank and deadline, then classes without a limit by arrival
  FlowTournament waiting_;  // the other backlogged classes by deadline
  FetchAhead next_sent_;
  FetchAhead next_due_;
};

}  // namespace vpfs
