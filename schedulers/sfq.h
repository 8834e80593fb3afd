#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedulers/anticipation.h"
#include "schedulers/claim_bound.h"
#include "schedulers/crowd_clock.h"
#include "schedulers/divider.h"
#include "schedulers/flow_heap.h"
#include "schedulers/flow_table.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/rate_limits.h"
#include "schedulers/start_tag.h"
#include "schedulers/total_service.h"

namespace vpfs {

// SFQ, start-time fair queueing [SFQ], which with the scheduler's depth is SFQ(D) [SFQD]:
// backlogged flows get service in proportion to their weights. Idle flows leave their part to the
// others and keep no claim.
//
//   S(r) = max(v, F(previous request of the flow)),  F(r) = S(r) + cost(r) / weight
//   send the smallest S (ties: arrival order), and set v := that S;
//   when nothing is queued and nothing outstanding, v := the largest F of what was sent.
//
// Only the head of a flow has a start tag here. While a flow is backlogged v never passes its
// head's tag, so the max() above matters only for a request that finds its flow's queue empty. For
// every later one S is the F before it, which is known when that one leaves. A request carries only
// cost / weight, computed at its arrival. So after a withdrawal the other requests have exactly the
// tags that they would have had without the withdrawn one.
//
// A request that did less than it was charged gives the rest back: the flow's tag moves earlier by
// the rest, but not below v. The part below v becomes `credit`, which moves the tags of the flow's
// next requests, each no further than to v. Credit ends with the backlog. docs/schedulers.md says
// why this stays fair.
//
// A flow may also have a limit and a minimum, the tags L and R of [MCLOCK]:
//
//   - A flow whose limit does not allow its head waits outside of the order above. v may pass its
//     tag; the tag comes up to v when the head is allowed.
//   - R(r) = R_prev + size_prev / min over every request that leaves, and not before the arrival
//     that ended an idle time. A head whose R has come goes before all others, smallest R first.
//     R_prev counts as no later than now, so service by weight beyond the minimum is never taken
//     off the minimum later. R_prev counts as no earlier than kMostDebt (at least one request)
//     before now, so a flow catches up after large requests blocked it, but an old debt does not
//     return as a flood.
//   - Service by R also moves S, but no more than kMaxReserved of cost and one request ahead of v.
//     Removing the minimum forgets this lead. So a flow gets the larger of two parts: its minimum,
//     or its share by weight of what the minimums of the others leave.
//
// Service elsewhere [DSFQ]: service by other servers moves a flow's tag at once as if it had been
// given here, but no more than kMaxCost ahead of v. It is a debt until v comes up to the tag. A
// debt holds a head for at most the given time, counted from when the head was first put back or
// became the head, and no longer than RateLimits::passes_at(). Then the head takes the place that
// it would have without the debt, and the debt stays. So the flow never gets more than its weight
// allows.
//
// A report is about a time that has passed. If it counted only then, all servers would correct the
// same difference, each of them in full, and too late: shares would swing. So each request is
// charged in advance for what its flow gets elsewhere meanwhile, by the ratio of service elsewhere
// to service here lately.
//
//   - Reports are put together to spans of some requests, and compared with what was charged for
//     their time. That is the time between the two reports before, since they go round in a period.
//   - Of the difference, one part in kGently counts, if what is charged is about right as a whole.
//     An application that is striped may be ahead on one server by what it is behind on another.
//     Differences that counted in full would cancel what holds it back on the first one.
//   - If it is not right, since the flow is hardly served here, the difference counts in full.
//   - Until a flow's ratio is known, what it is served counts here alone.
//
// A flow that always gets more elsewhere than the others here could make up for would owe more and
// more, and pay for it long after they, or its other servers, are gone. So a debt is no more than
// kMostReports of the largest of the last reports. Where totals can be fair, each report is paid
// before the next one comes.
//
// Siblings, the other schedulers of the data server, tell what they send through a TotalService. It
// moves a flow's tag as service elsewhere does, when the flow comes to the top of the order, is
// sent, or comes back; meanwhile its entry is too early, never too late but for what requests did
// less than they were charged. A flow that comes back from siblings goes on from its tag, at most
// the bound of siblings_bound_ behind v, and may be as much ahead: it lost its turns here, or had
// more than its share, since its requests were there. An idle moment ends claims only if all
// siblings have it.
//
// Anticipation, if it is on: a flow that is trusted to come back soon goes on from its last finish
// tag, at most Anticipation::most_behind() behind v, and slots may be kept for it. Flows with a
// limit or a minimum are as without.
//
// Arithmetic. Tags are fixed point with kFractionBits, remainders of the division are carried to
// the flow's next request. S of a head that was moved out of the order is at most kMaxCost and one
// request above v, so no tag is more than 2 x 2^60 above v. When v passes 2^62 it is taken off all
// tags, so no tag reaches 2^63. This is O(flows) and rare: with one flow of weight 1 at 10 GB/s it
// happens every seven minutes.
class Sfq final : public Policy {
 public:
  using Tag = StartTag::Tag;

  static const PolicyKind kKind;

  // How far a minimum may put a flow behind in the order by weight. This is far more than a minimum
  // gives while the largest requests block the server.
  static constexpr Cost kMaxReserved = Cost{1} << 26;
  // How far behind its minimum a flow may be and still catch up.
  static constexpr Duration kMostDebt = std::chrono::seconds(1);
  // How many reports of service elsewhere a debt may be.
  static constexpr Cost kMostReports = 4;
  // The bound of what siblings do to a tag (ClaimBound).
  static constexpr Tag kSiblingSteps = 64;
  static constexpr Cost kSiblingRequests = 256;

  // `limits` outlives the policy; another one of the same flows may use them too. So does `total`,
  // if it is given.
  explicit Sfq(RateLimits& limits, RateLimits::User user = 0,
               const AnticipationSettings& anticipation = {}, TotalService* total = nullptr)
      : limits_(limits), user_(user), total_(total) {
    if (anticipation.on) anticipation_.emplace(anticipation);
  }
  ~Sfq() override;
  Sfq(const Sfq&) = delete;
  Sfq& operator=(const Sfq&) = delete;

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Head head(TimePoint now) override;
  void has_no_room(TimePoint now) override {
    if (anticipation_) anticipation_->slot_is_used(now);
  }
  void dispatch(IoRequest& request, TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void let_pass(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Result<void> set_share(AppId app, const Share& share, TimePoint now) override;
  [[nodiscard]] bool set_limits(AppId app, const Limits& limits, TimePoint now) override;
  void remove(AppId app, TimePoint now) override;
  void served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now) override;
  void forget_elsewhere(TimePoint now) override;
  void charge_more(const IoRequest& request, Cost cost) override;
  void prefetch() const override;
  void prefetch_rows(AppId app) const override {
    flows_.prefetch(std::to_underlying(app));
    limits_.prefetch_all(std::to_underlying(app));
  }
  void prefetch_head(AppId app) const override { flows_.prefetch_head(std::to_underlying(app)); }
  [[nodiscard]] HoldClock& holds() override { return flows_.holds(); }
  [[nodiscard]] CrowdClock* crowds() override { return &crowds_; }

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override {
    return flows_.some_head({&ready_, &limited_});
  }
  [[nodiscard]] FlowState flow(AppId app) const override { return flows_.state(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override {
    return anticipation_ ? anticipation_->server(now) : StatusFields{};
  }

 private:
  struct alignas(64) Flow : FlowQueue, StartTag {
    bool has_limit = false;
    bool has_min = false;
    bool in_debt = false;     // `tag` contains service elsewhere
    bool in_backlog = false;  // the limits know of the queue's backlog
  };
  static_assert(sizeof(Flow) == 64);
  struct Minimum {
    Divider rate{1};
    TimePoint due = {};  // R of the next request

    void served(const IoRequest& request, TimePoint now);
  };

  struct Debt {
    Tag owed = 0;                   // the part of Flow::tag that is above v
    Tag most = 0;                   // that it may be for service elsewhere
    Duration delay = {};            // for how long it may hold a head
    Duration elsewhere_delay = {};  // the same for service elsewhere alone
    TimePoint due = {};             // when it stops holding the present head

    // What was sent here, and charged for it in advance.
    struct Sent {
      Cost own = 0;
      Tag charged = 0;
    };
    Sent sent;         // since the last report
    Sent before;       // between the last two
    Cost request = 1;  // the last one
    // Reports are put together until they are about some requests. With what was sent in their
    // time.
    struct Span : Sent {
      Cost elsewhere = 0;
    };
    Span span;
    Span lately;              // of the last spans, the older ones with less weight
    Tag reported_lately = 0;  // service elsewhere, like `charged` of the same spans
    std::uint64_t ratio = 0;  // of service elsewhere to service here, fixed point
    Tag overcharged = 0;      // that could not be given back; less is charged until it is gone

    bool counts = false;        // a report has come
    std::uint8_t learning = 0;  // spans, the present one included, that only teach the ratio

    [[nodiscard]] bool is_learning() const { return learning > 0; }
    // True: the span is long enough.
    [[nodiscard]] bool take_report(Cost elsewhere);
    void close_span(Tag reported);
    // Whether what is charged in advance is what is reported, by and large.
    [[nodiscard]] bool is_charged_well() const {
      return lately.own > 0 && lately.charged >= reported_lately - reported_lately / 8;
    }
  };

  // Puts a flow where its head belongs. REQUIRES: it has a head.
  void place(std::uint32_t index, TimePoint now);
  void place_again(std::uint32_t index, TimePoint now) {
    take_out(index);
    place(index, now);
  }
  // When the flow's limits allow its head. REQUIRES: it has one.
  [[nodiscard]] TimePoint allowed_at(std::uint32_t index, TimePoint now) {
    const IoRequest& head = *flows_[index].queue.front();
    if (!limits_.is_allocated(head.app)) return limits_.allowed_at(head, user_, now);
    return limits_.allowed_by_both_at(head, flows_.oldest_arrival(index), user_, now);
  }
  void tell_backlog(Flow& flow, std::uint32_t index, TimePoint now);
  // The start tag of a request that finds nothing of its flow queued and nothing owed to it.
  [[nodiscard]] Tag tag_of_first(const Flow& flow, Tag most_behind) const;
  // How far behind v a flow may be that came back as expected, or from siblings.
  [[nodiscard]] Tag most_behind(const Flow& flow, bool as_expected, bool from_siblings) const {
    const Tag most = as_expected ? anticipation_->most_behind(flow) : 0;
    return from_siblings ? std::max(most, siblings_bound_.most(flow)) : most;
  }
  // Until when a slot is kept for a flow that would go before all that are ready; a time not after
  // `now`: none is.
  [[nodiscard]] TimePoint slot_kept_until(TimePoint now);
  // When time alone changes what may go, or in which order.
  [[nodiscard]] TimePoint next_change() const;
  void expect(const Flow& flow, std::uint32_t index);
  void expect_by_new_tag(std::uint32_t index);
  void place_constrained(std::uint32_t index, const IoRequest& request, TimePoint now);
  // The flow has a new head.
  void begin_head(Flow& flow, std::uint32_t index, TimePoint now);
  // Charges a request that was just sent for what its flow gets elsewhere meanwhile.
  void charge_in_advance(Flow& flow, std::uint32_t index, const IoRequest& request);
  // When a debt that begins to hold the head now has to let it go.
  [[nodiscard]] TimePoint debt_lets_go_at(std::uint32_t index, TimePoint now) const;
  // Puts a head that its limit allows into the order.
  void place_in_order(std::uint32_t index, TimePoint now);
  // The tag of a flow without its debt.
  [[nodiscard]] Tag tag_without_debt(std::uint32_t index) const;
  [[nodiscard]] Tag most_owed(const Flow& flow, const Debt& debt) const;
  [[nodiscard]] Duration longest_delay(const Debt& debt) const;
  void end_holds_by_debt(TimePoint now);
  void tag_has_changed(std::uint32_t index);
  void take_out(std::uint32_t index);
  void allow_due(TimePoint now);
  [[nodiscard]] bool reservation_is_due(TimePoint now);
  void change_tag(std::uint32_t index, Tag tag);
  // v as it will be when a flow of this weight has got this much more.
  [[nodiscard]] Tag ahead(const Flow& flow, Cost cost) const;
  void grow_debts();
  static Tag move_ahead(Flow& flow, Tag by, Tag latest);
  void give_back(Flow& flow, std::uint32_t index, Tag amount);
  // The flow's debt has changed.
  void settle_debt(Flow& flow, std::uint32_t index, TimePoint now);
  void end_busy_period_if_idle();
  void end_busy_period();
  void grow_siblings();
  // Ends the busy period if all siblings were idle since.
  void end_busy_period_of_all();
  // Whether the flow has requests at siblings.
  [[nodiscard]] bool is_at_siblings(const Flow& flow, std::uint32_t index) const {
    return (*total_)[index].present > flow.account.queued + flow.account.outstanding;
  }
  // The first request in its queue has come. Whether it was, or is, at siblings meanwhile.
  [[nodiscard]] bool comes_from_siblings(const Flow& flow, std::uint32_t index, TimePoint now);
  // Moves the tag by what siblings have sent since. False: nothing.
  bool catch_up(std::uint32_t index, TimePoint now);
  // The tag has moved by service here.
  void tell_siblings(std::uint32_t index, Tag amount) {
    if (total_ == nullptr) return;
    total_->served(index, amount);
    seen_[index].served += amount;
  }
  void rebase();

  RateLimits& limits_;
  RateLimits::User user_;  // of the limits
  FlowTable<Flow, true> flows_;
  CrowdClock crowds_;
  std::vector<Minimum> minimums_;  // by flow, up to the last one with a minimum
  std::vector<Debt> debts_;        // by flow, once one was served elsewhere
  FlowHeap ready_;     // backlogged flows that may be served, by (S, arrival order) of their heads
  FlowHeap limited_;   // other backlogged flows, by when their limit allows the head
  FlowHeap reserved_;  // backlogged flows with a minimum, by R, but not before their limit
  FlowHeap indebted_;  // flows of ready_ that a debt holds, by its end
  std::optional<Anticipation> anticipation_;  // nothing: it is off
  TotalService* total_;                       // with siblings; nullptr: it has none
  // What is known of the flow's row of total_.
  struct Seen {
    Tag served = 0;
    std::uint32_t returns = 0;
  };
  std::vector<Seen> seen_;
  ClaimBound siblings_bound_ = {kSiblingSteps, kSiblingRequests};
  std::uint64_t idle_moments_ = 0;
  Tag virtual_time_ = 0;
  Tag idle_time_ = 0;  // v when nothing was queued or outstanding last
  Tag largest_finish_ = 0;
  std::size_t outstanding_ = 0;
  bool by_reservation_ = false;  // the last answer of head()
};

}  // namespace vpfs
