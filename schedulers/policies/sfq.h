#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "schedulers/crowd_clock.h"
#include "schedulers/fetch_ahead.h"
#include "schedulers/flow_table.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/policies/anticipation.h"
#include "schedulers/policies/debt_book.h"
#include "schedulers/policies/minimums.h"
#include "schedulers/policies/sfq_order.h"
#include "schedulers/policies/siblings.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/rate_limits.h"
#include "schedulers/start_tag.h"
#include "schedulers/time_tag.h"

namespace vpfs {

// SFQ, start-time fair queueing [SFQ], which with the scheduler's depth is SFQ(D) [SFQD]:
// backlogged flows get service in proportion to their weights. docs/schedulers.md, "SFQ(D)", has
// the equations, why they are fair, and the bounds of tags.
//
//   SfqOrder      S(r) = max(v, F(previous)),  F(r) = S(r) + cost(r) / weight; the least S goes
//   RateLimits    a flow waits outside of the order until its limit allows its head [MCLOCK]
//   Minimums      R(r) = R_prev + size_prev / min; a head whose R has come goes before all others
//   DebtBook      service elsewhere moves S as if it had been given here; what is ahead of v is a
//                 debt, which holds a head for a given time at most [DSFQ]
//   Siblings      what the other schedulers of the data server send moves S likewise
//   Anticipation  a flow that comes back soon may be behind v, and slots are kept for it [AS]
//
// Only the head of a flow has a start tag. A request carries cost / weight, computed at its
// arrival, so after a withdrawal the others have the tags that they would have had without it.
//
// A flow that has none of a limit, a minimum and a debt is charged and placed by SfqOrder alone.
class Sfq final : public Policy {
 public:
  using Tag = StartTag::Tag;

  static const PolicyKind kKind;

  // How far a minimum may put a flow behind in the order by weight. This is far more than a minimum
  // gives while the largest requests block the server.
  static constexpr Cost kMaxReserved = Cost{1} << 26;

  // `limits` outlives the policy; another one of the same flows may use them too. So does `total`,
  // if it is given.
  explicit Sfq(RateLimits& limits, RateLimits::User user = 0,
               const AnticipationSettings& anticipation = {}, TotalService* total = nullptr)
      : limits_(limits), user_(user), siblings_(total) {
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
  void charge_more(const IoRequest& request, Cost cost, TimePoint now) override;
  void prefetch_rows(AppId app) const override {
    flows_.prefetch(std::to_underlying(app));
    limits_.prefetch_all(std::to_underlying(app));
  }
  void prefetch_head(AppId app) const override { flows_.prefetch_head(std::to_underlying(app)); }
  void save_all(TimePoint now, SavedState& to) override;
  void save(AppId app, TimePoint now, SavedState& to) override;
  void restore_all(const SavedState& from, TimePoint now) override;
  void restore(AppId app, const SavedState& from, TimePoint now) override;
  [[nodiscard]] HoldClock& holds() override { return flows_.holds(); }
  [[nodiscard]] CrowdClock* crowds() override { return &crowds_; }

  [[nodiscard]] std::size_t queued() const override { return flows_.queued(); }
  [[nodiscard]] IoRequest* any_queued() const override {
    return flows_.some_head({&order_.ready(), &limited_});
  }
  [[nodiscard]] FlowState flow(AppId app) const override { return flows_.state(app); }
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const override;
  [[nodiscard]] StatusFields server(TimePoint now) const override {
    return anticipation_ ? anticipation_->server(now) : StatusFields{};
  }

 private:
  // What is touched for each request. The flags say what else there is to do.
  struct alignas(64) Flow : FlowQueue, StartTag {
    bool has_limit : 1 = false;
    bool has_min : 1 = false;
    bool in_debt : 1 = false;               // `tag` contains service elsewhere
    bool is_charged_elsewhere : 1 = false;  // in advance
    bool in_backlog : 1 = false;            // the limits know of the queue's backlog

    // Whether the order alone says when the head goes.
    [[nodiscard]] bool waits_by_order() const { return !has_limit && !has_min && !in_debt; }
  };
  static_assert(sizeof(Flow) == 64);

  // Puts a flow where its head belongs. REQUIRES: it has a head.
  void place(std::uint32_t index, TimePoint now);
  void place_constrained(Flow& flow, std::uint32_t index, TimePoint now);
  // Puts a head that its limit allows into the order.
  void place_in_order(std::uint32_t index, TimePoint now);
  void place_again(std::uint32_t index, TimePoint now) {
    take_out(index);
    place(index, now);
  }
  void take_out(std::uint32_t index);
  void change_tag(std::uint32_t index, Tag tag) {
    order_.put(index, tag, flows_[index].queue.front()->order);
  }
  void tag_has_changed(std::uint32_t index);
  // The flow has a new head.
  void begin_head(Flow& flow, std::uint32_t index, TimePoint now) {
    if (flow.in_debt) debts_.begin_hold(index, passes_at(index), now);
  }
  // It has nothing queued any more. `is_at_server`: something else of it is at the server.
  void end_queue(Flow& flow, std::uint32_t index, bool is_at_server, TimePoint now);
  void prefetch_rows_of(std::uint32_t index) const;

  // Moves S and v for a request that is sent, and takes it off what limits and minimums allow.
  void charge_constrained(Flow& flow, std::uint32_t index, IoRequest& request, TimePoint now);
  // Moves S for service that was not given by S, but not beyond `latest`. Returns the distance.
  static Tag move_ahead(Flow& flow, Tag by, Tag latest);
  void give_back(Flow& flow, std::uint32_t index, Tag amount);
  // S is no earlier than that of a request that finds its queue empty.
  void start_not_before(Flow& flow, Tag most_behind) const {
    const bool may_be_behind = !flow.has_limit && !flow.has_min;
    flow.tag = order_.start_of_first(flow, may_be_behind ? most_behind : 0);
  }
  void end_busy_period_if_idle() {
    if (outstanding_ == 0 && flows_.queued() == 0 && !siblings_.exist()) end_busy_period();
  }
  void end_busy_period();
  void rebase();

  // Limits. When they allow the flow's head. REQUIRES: it has one.
  [[nodiscard]] TimePoint allowed_at(std::uint32_t index, TimePoint now) {
    const IoRequest& head = *flows_[index].queue.front();
    if (!limits_.is_allocated(head.app)) return limits_.allowed_at(head, user_, now);
    return limits_.allowed_by_both_at(head, flows_.oldest_arrival(index), user_, now);
  }
  void allow_due(TimePoint now);
  void tell_backlog(Flow& flow, std::uint32_t index, TimePoint now);
  // Whether it had one.
  bool set_has_limit(Flow& flow, AppId app);

  // Service elsewhere. A head passes then, whatever its flow owes.
  [[nodiscard]] TimePoint passes_at(std::uint32_t index) const {
    return limits_.passes_at(flows_.oldest_arrival(index));
  }
  void grow_debts();
  // The tag of a flow without its debt.
  [[nodiscard]] Tag tag_without_debt(std::uint32_t index) const;
  // One debt is for what a flow got from siblings and for what it got elsewhere.
  [[nodiscard]] Tag most_owed(const Flow& flow, std::uint32_t index) const {
    return debts_.most(index) + siblings_.most(flow);
  }
  void end_holds_by_debt(TimePoint now) {
    const FlowTournament& holding = debts_.holding();
    while (!holding.empty() && time_of(holding.top_tag()) <= now) {
      place_in_order(holding.top(), now);
    }
  }
  // Charges a request that was just sent for what its flow gets elsewhere meanwhile.
  void charge_in_advance(Flow& flow, std::uint32_t index, const IoRequest& request);
  // The flow's debt has changed.
  void settle_debt(Flow& flow, std::uint32_t index, TimePoint now);

  // Siblings. Ends the busy period if all of them were idle since.
  void end_busy_period_of_all() {
    if (siblings_.exist() && siblings_.were_idle()) end_busy_period();
  }
  // Whether the flow has requests at siblings.
  [[nodiscard]] bool is_at_siblings(const Flow& flow, std::uint32_t index) const {
    return siblings_.have_more_than(flow.account.queued + flow.account.outstanding, index);
  }
  // The first request in its queue has come. Whether it was, or is, at siblings meanwhile.
  [[nodiscard]] bool comes_from_siblings(const Flow& flow, std::uint32_t index, TimePoint now);
  // Moves the tag by what siblings have sent since. False: nothing.
  bool catch_up(std::uint32_t index, TimePoint now);

  // Claims. How far behind v a flow may be that came back as expected, or from siblings.
  [[nodiscard]] Tag most_behind(const Flow& flow, bool as_expected, bool from_siblings) const {
    const Tag most = as_expected ? anticipation_->most_behind(flow) : 0;
    return from_siblings ? std::max(most, siblings_.most(flow)) : most;
  }
  // Until when a slot is kept for a flow that would go before all that are ready; a time not after
  // `now`: none is.
  [[nodiscard]] TimePoint slot_kept_until(TimePoint now);
  // When time alone changes what may go, or in which order.
  [[nodiscard]] TimePoint next_change() const;
  // The flow has nothing queued.
  void expect(const Flow& flow, std::uint32_t index);
  void expect_by_new_tag(std::uint32_t index);
  void anticipate_after(const Flow& flow, const IoRequest& request, Cost cost, TimePoint now);

  RateLimits& limits_;
  RateLimits::User user_;  // of the limits
  FlowTable<Flow, true> flows_;
  SfqOrder order_;          // backlogged flows that may be served
  FlowTournament limited_;  // other backlogged flows, by when their limit allows the head
  Minimums minimums_;
  DebtBook debts_;  // empty until a flow was served elsewhere
  Siblings siblings_;
  std::optional<Anticipation> anticipation_;  // nothing: it is off
  CrowdClock crowds_;
  std::size_t outstanding_ = 0;
  bool by_minimum_ = false;  // the last answer of head()
  FetchAhead next_sent_;     // by the order, or by minimums
  FetchAhead next_due_;      // by limits
};

}  // namespace vpfs
