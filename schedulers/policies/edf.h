#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedulers/flow_table.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/policies/admission.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/token_bucket.h"

namespace vpfs {

// What promises are made of.
struct EdfSettings {
  std::uint64_t capacity = 0;  // of the data server, cost/s; zero: unknown, nothing is promised
  // Promises allow for requests of this cost. A larger one may make the server late.
  Cost largest_request = 4 * kMiB;
  Duration default_latency = std::chrono::seconds(1);  // of flows without a target

  bool operator==(const EdfSettings&) const = default;
};

// Earliest deadline first over arrival curves [FACADE] [PCLOCK].
//
// A flow whose curve (burst, rate, latency) was admitted has a bucket of `burst` that fills at
// `rate`. A request that comes at t starts at t if the bucket holds its cost, else when it would;
// its deadline is start + latency. A request larger than the burst starts with a full bucket, and
// its deadline moves by the time that the rate takes for the part beyond the burst. So it never
// asks for more than the curve does, in any interval.
//
//   1. Requests that have started go first, earliest deadline first: the promises.
//   2. When there are none, no curve claims the capacity. It goes to the waiting requests, earliest
//      deadline first: requests of promised flows that start later, and requests of all other
//      flows, whose deadline is their arrival + latency. When one of the former goes early, the
//      starts and buckets of all curves move so that its start is now; no flow pays for it later.
//
// All starts are on a clock of their own, `now` + shift_, so moving them all is one addition. A
// move happens when nothing has started, so from then on the demand of each curve is again within
// its burst and rate: promises hold through it.
//
// A promise begins when it is given, and requests that are queued then count as arriving then. When
// curves change while promised requests wait, nothing is late as long as the curves before and
// after fit together. Capacity that moves from one flow to another at one moment may make waiting
// requests late once.
//
// Only the head of a flow has a start; it is taken out of the bucket when the request leaves, so
// withdrawn requests are never charged.
class Edf final : public Policy {
 public:
  static const PolicyKind kKind;

  // `ahead`: see Admission.
  Edf(const EdfSettings& settings, Cost ahead);
  Edf(const Edf&) = delete;  // flows refer to its heaps

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void let_pass(IoRequest& request, TimePoint now) override;
  // A promised flow's next requests start later for it.
  void charge_more(const IoRequest& request, Cost cost, TimePoint now) override;
  // An unchanged promise goes on as it was given.
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  void remove(AppId app, TimePoint now) override;
  void save_all(TimePoint now, SavedState& to) override;
  void save(AppId app, TimePoint now, SavedState& to) override;
  void restore_all(const SavedState& from, TimePoint now) override;
  void restore(AppId app, const SavedState& from, TimePoint now) override;
  [[nodiscard]] HoldClock& holds() override { return flows_.holds(); }

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override {
    return flows_.some_head({&started_, &later_, &others_});
  }
  [[nodiscard]] FlowState flow(AppId app) const override { return flows_.state(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override;

 private:
  struct alignas(64) Flow : FlowQueue {
    Duration latency = {};  // of the promise, else the target or the default
    Duration target = {};   // zero: none
    TokenBucket bucket;     // of the curve, on the clock of starts
    TimePoint since = {};   // on the clock of starts: no request starts earlier
    std::uint64_t misses = 0;
    Duration worst_tardiness = {};
    TimePoint promised_until = {};   // the promise ends then
    FlowTournament* heap = nullptr;  // the one that has the flow; nullptr while nothing is queued
    bool promised = false;

    [[nodiscard]] bool has_deadlines() const { return promised || target > Duration::zero(); }
  };

  // When the head of a flow may start, and its deadline then; on the clock of starts.
  [[nodiscard]] static TimePoint start_of(const Flow& flow);
  [[nodiscard]] static TimePoint deadline_of(const Flow& flow, TimePoint start);
  [[nodiscard]] TimePoint on_start_clock(TimePoint now) const { return now + shift_; }
  [[nodiscard]] bool asks_anew(std::uint32_t index, const Share& asked);
  Result<std::optional<ArrivalCurve>> curve_of(AppId app, const Share& share, TimePoint now);
  void begin_promise(std::uint32_t index, const ArrivalCurve& curve, TimePoint now);
  void end_promise(std::uint32_t index);
  void end_past_promises(TimePoint now);
  void place(std::uint32_t index, TimePoint now);
  void take_out(Flow& flow, std::uint32_t index);
  void start_due(TimePoint now);
  void set_shift(Duration shift);
  void rebase(TimePoint now);
  // The flow that goes next; the heaps say which one it is in. REQUIRES: something is queued.
  [[nodiscard]] std::uint32_t choose() const;

  EdfSettings settings_;
  Admission admission_;
  FlowTable<Flow> flows_;
  std::vector<Share> asked_;  // by flow: the share given to set_share(), if it asks for anything
  FlowTournament started_;    // promised flows whose head has started, by deadline
  FlowTournament later_;      // promised flows whose head has not, by start
  FlowTournament others_;     // flows without a promise, by deadline
  Duration shift_ = {};
  TimePoint first_end_ = kNever;  // no promise ends before
};

}  // namespace vpfs
