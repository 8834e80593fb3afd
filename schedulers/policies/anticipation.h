#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/flow_heap.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/claim_bound.h"
#include "schedulers/policies/keep_controller.h"
#include "schedulers/policies/think_time.h"
#include "schedulers/start_tag.h"
#include "schedulers/status_fields.h"

namespace vpfs {

// What Sfq does for flows that cannot keep a queue (anticipatory scheduling [AS], [BFQ], for a
// server that serves several requests at once). docs/schedulers.md says how and proves the bound.
//
// It knows of each flow when its next request comes (ThinkTime). With that it
//
// - lets a flow that comes back in time go on from its last finish tag, but no further behind v
// than
//   most_behind(), and
// - keeps a slot for the flow that would be next if its next request were there, while as many
//   requests are at the server as that one should find there (KeepController).
//
// Flows with a limit or a minimum are left out. Every call is O(log n) in expected flows, and
// nothing allocates but grow().
class Anticipation {
 public:
  using Tag = StartTag::Tag;
  // How far a flow may be behind v, in requests of the flow whose requests move v the most. Without
  // an overflow of tags if these are of kMaxCost.
  static constexpr Tag kMostBehind = 16;
  // How much more than its weight's part a claim may bring, in requests as large as any lately.
  static constexpr Cost kMostClaim = 64;

  explicit Anticipation(const AnticipationSettings& settings)
      : keeps_(settings.max_loss > 0), controller_(settings.max_loss) {}

  void grow(std::size_t flows);

  // A request came; `in_flight` of its flow counts it, and the flow is `lag` behind v. True: it
  // came back as expected.
  bool arrived(std::uint32_t flow, std::uint32_t in_flight, const StartTag& tag, Tag lag,
               TimePoint now) {
    expected_.erase(flow);
    Row& row = rows_[flow];
    const bool as_expected = row.think.arrived(in_flight, now);
    if (keeps_ && row.was_expected) {
      // While it is not behind v it gets all that its weight gives it.
      lag > 0 ? take_stock(row, in_flight, tag, lag) : void(row.work = controller_.work());
    }
    return as_expected;
  }
  // One was sent, which moves the flow's tag by `amount`, and used a slot that was kept.
  void sent(std::uint32_t flow, Cost cost, Tag amount, TimePoint now) {
    slot_is_used(now);
    Row& row = rows_[flow];
    row.think.sent(controller_.time_of(at_server_), now);
    at_server_ += cost;
    bound_.sent(cost, amount);
  }
  struct Done {
    Cost cost = 0;
    Cost sent_as = 0;  // its cost when it was sent
    TimePoint sent = {};
    std::uint32_t outstanding = 0;  // of all flows, without it
    bool is_backlogged = false;     // a request waits for its turn
  };
  void completed(std::uint32_t flow, const Done& done, TimePoint now) {
    Row& row = rows_[flow];
    at_server_ -= done.sent_as;
    row.think.answered(now - done.sent, row.was_expected && controller_.has_explored(), now);
    if (!keeps_) return;
    controller_.completed(done.cost, done.sent, done.outstanding, done.is_backlogged, now);
  }

  // The flow has nothing queued, and its next request would have the start tag `tag`. It is
  // expected from now on if it can be trusted to come.
  void expect(std::uint32_t flow, Tag tag) {
    if (keeps_ && rows_[flow].think.is_trusted()) begin_to_expect(flow, tag);
  }
  void forget(std::uint32_t flow, TimePoint now) {
    expected_.erase(flow);
    if (kept_for_ == flow) end_keep(now);
  }
  [[nodiscard]] bool expects(std::uint32_t flow) const { return expected_.contains(flow); }
  // Whether the flow's next request would have a claim if it came now.
  [[nodiscard]] bool may_return(std::uint32_t flow, TimePoint now) const {
    return rows_[flow].think.may_return(now);
  }
  void forget_all();
  // The flow has ended; the next one of its number begins anew.
  void remove(std::uint32_t flow, TimePoint now);
  // Fetches what is known of a flow into the cache.
  void prefetch(std::uint32_t flow) const {
    const auto* const lines = reinterpret_cast<const std::byte*>(&rows_[flow]);
    for (std::size_t line = 0; line < sizeof(Row); line += 64) __builtin_prefetch(lines + line);
    expected_.prefetch(flow);
  }

  // The most that a flow of this weight may be behind v when it comes back.
  [[nodiscard]] Tag most_behind(const StartTag& of) const { return bound_.most(of); }

  // Whether a flow may be expected whose tag is smaller than `tag`, the smallest queued one.
  [[nodiscard]] bool is_before(Tag tag) const {
    return !expected_.empty() && expected_.top_tag() < tag;
  }
  // The expected flow with the smallest tag. REQUIRES: is_before() some tag.
  [[nodiscard]] std::uint32_t next() const { return expected_.top(); }
  // Until when a slot is kept for next(), of which `own` requests are among the `outstanding` ones;
  // a time that is not after `now`: none is. Forgets a flow that did not come in time.
  [[nodiscard]] TimePoint keep_until(std::uint32_t own, std::uint32_t outstanding, TimePoint now);
  void starved() { controller_.starved(); }

  // A request that has room at the data server is kept back for the flow, or none is any more.
  void slot_is_kept(std::uint32_t flow, TimePoint now) {
    if (kept_for_ == flow) return;
    slot_is_used(now);
    kept_for_ = flow;
    kept_since_ = now;
  }
  void slot_is_used(TimePoint now) {
    if (kept_for_ != kNobody) end_keep(now);
  }
  // Whether a slot is kept, and for which flow.
  [[nodiscard]] bool is_keeping() const { return kept_for_ != kNobody; }
  [[nodiscard]] std::uint32_t kept_for() const { return kept_for_; }

  template <typename Archive>
  void archive(Archive& fields) {
    fields("controller", controller_);
    fields("bound", bound_);
    fields("kept_in_all", kept_in_all_);
  }
  // REQUIRES: grow() was called for the flow.
  template <typename Archive>
  void archive_flow(std::uint32_t flow, Archive& fields) {
    fields("think", rows_[flow].think);
    fields("kept", rows_[flow].kept);
  }

  [[nodiscard]] StatusFields report(std::uint32_t flow, TimePoint now) const;
  [[nodiscard]] StatusFields server(TimePoint now) const;

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  struct alignas(64) Row {
    ThinkTime think;
    Duration kept = {};  // for how long slots were kept for the flow
    // By how much of the server's time the flow is behind what it could have got.
    Duration behind = {};
    Cost work = 0;              // KeepController::work() at the last request
    bool was_expected = false;  // since it was last forgotten or given up
  };

  static constexpr int kMostStock = 8;  // requests alone

  // Another request of an expected flow.
  void take_stock(Row& row, std::uint32_t in_flight, const StartTag& tag, Tag lag);
  void begin_to_expect(std::uint32_t flow, Tag tag);
  void end_keep(TimePoint now);
  [[nodiscard]] Duration kept(std::uint32_t flow, TimePoint now) const;

  bool keeps_;
  KeepController controller_;
  std::vector<Row> rows_;
  FlowHeap expected_;   // by the start tag of the next request
  Cost at_server_ = 0;  // of all requests that are outstanding
  ClaimBound bound_ = {kMostBehind, kMostClaim};
  std::uint32_t kept_for_ = kNobody;
  TimePoint kept_since_ = {};
  Duration kept_in_all_ = {};
};

}  // namespace vpfs
