// The part of Sfq that counts what flows get elsewhere: from other data servers (DebtBook), and
// from the other schedulers of this one (Siblings).
#include <algorithm>
#include <utility>

#include "schedulers/policies/sfq.h"

namespace vpfs {
namespace {

// Requests give back what they were charged too much, which is less than any service since.
constexpr StartTag::Tag kMostGivenBack = StartTag::Tag{1} << 61;

}  // namespace

Sfq::~Sfq() {
  std::uint32_t index = 0;
  for (const Flow& flow : flows_) {
    siblings_.left(index++, flow.account.queued + flow.account.outstanding, TimePoint::min());
  }
}

void Sfq::grow_debts() {
  debts_.grow(flows_.size());
  if (siblings_.exist()) return;
  for (Flow& flow : flows_) flow.is_charged_elsewhere = true;
}

Sfq::Tag Sfq::tag_without_debt(std::uint32_t index) const {
  return std::max(order_.virtual_time(),
                  StartTag::subtract_to_zero(flows_[index].tag, debts_.owed(index)));
}

void Sfq::served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now) {
  if (debts_.empty()) grow_debts();
  end_busy_period_of_all();
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  flow.is_charged_elsewhere = true;
  debts_.set_reported_delay(index, delay);
  debts_.set_delay(index, siblings_.longest_delay());
  if (!debts_.take_report(index, std::min(cost, kMaxCost))) return;
  // What its limit holds back has no claim. Nor has a flow that has nothing here, unless it comes
  // back soon.
  const bool has_head = !flow.queue.empty();
  const bool may_return =
      anticipation_ && (has_head || anticipation_->may_return(index, now)) && !flow.has_limit;
  const bool at_siblings =
      siblings_.exist() && (has_head || is_at_siblings(flow, index)) && !flow.has_limit;
  start_not_before(flow, most_behind(flow, may_return, at_siblings));
  // Service elsewhere takes from the claim first.
  const Tag claim = order_.behind(flow);
  const Tag all = flow.next_amount(std::min(debts_.reported(index), kMaxCost));
  Tag owed = flow.in_debt && claim == 0 ? flow.tag - tag_without_debt(index) : 0;
  const DebtBook::Correction by = debts_.count(index, all, owed);
  flow.tag -= by.back;
  owed -= by.back;
  const Tag room = StartTag::subtract_to_zero(most_owed(flow, index), owed) + claim;
  const Tag moved = move_ahead(flow, std::min(by.more, room), order_.ahead(flow, kMaxCost));
  debts_.owe(index, owed + StartTag::subtract_to_zero(moved, claim));
  settle_debt(flow, index, now);
}

void Sfq::settle_debt(Flow& flow, std::uint32_t index, TimePoint now) {
  const bool was_in_debt = flow.in_debt;
  flow.in_debt = debts_.owed(index) > 0;
  if (flow.queue.empty()) return expect_by_new_tag(index);
  if (!flow.in_debt) {
    if (was_in_debt) return place_again(index, now);
    if (order_.contains(index)) tag_has_changed(index);
    return;
  }
  if (was_in_debt) {
    debts_.shorten_hold(index, passes_at(index), now);
  } else {
    debts_.begin_hold(index, passes_at(index), now);
  }
  place_again(index, now);
}

void Sfq::charge_in_advance(Flow& flow, std::uint32_t index, const IoRequest& request) {
  const Tag owed = flow.in_debt ? debts_.owed(index) : 0;
  const Tag more =
      debts_.charge_in_advance(index, request.cost, request.tag, owed, siblings_.most(flow));
  if (more == 0) return;
  flow.tag += more;
  // A flow that came back as expected may be behind v even so.
  const Tag above = StartTag::subtract_to_zero(flow.tag, order_.virtual_time());
  debts_.owe(index, std::min(owed + more, above));
  flow.in_debt = debts_.owed(index) > 0;
}

void Sfq::forget_elsewhere(TimePoint now) {
  for (std::uint32_t index = 0; index < debts_.size(); ++index) {
    Flow& flow = flows_[index];
    if (flow.in_debt) flow.tag = tag_without_debt(index);
    expect_by_new_tag(index);
    debts_.forget(index);
    if (siblings_.exist()) flow.is_charged_elsewhere = false;
    const bool was_in_debt = flow.in_debt;
    flow.in_debt = false;
    if (was_in_debt && !flow.queue.empty()) place_again(index, now);
  }
}

// REQUIRES: the request that has come is counted in the flow's account.
bool Sfq::comes_from_siblings(const Flow& flow, std::uint32_t index, TimePoint now) {
  const bool was_away = siblings_.have_missed(index);
  const bool was_served = catch_up(index, now);
  return !was_away && (was_served || is_at_siblings(flow, index));
}

bool Sfq::catch_up(std::uint32_t index, TimePoint now) {
  const Tag by = siblings_.news_of(index);
  if (by == 0) return false;
  Flow& flow = flows_[index];
  debts_.set_delay(index, siblings_.longest_delay());
  // v may have passed the tag of a flow that had no request here.
  const Tag owed = flow.in_debt ? StartTag::subtract_to_zero(flow.tag, tag_without_debt(index)) : 0;
  if (Tag{0} - by >= kMostGivenBack) {
    const Tag claim = order_.behind(flow);
    const Tag room = StartTag::subtract_to_zero(most_owed(flow, index), owed) + claim;
    const Tag moved = move_ahead(flow, std::min(by, room), order_.ahead(flow, kMaxCost));
    debts_.owe(index, owed + StartTag::subtract_to_zero(moved, claim));
  } else {
    // Requests did less there than was charged when they were sent.
    const Tag least = StartTag::subtract_to_zero(order_.virtual_time(), siblings_.most(flow));
    const Tag back = std::min(Tag{0} - by, StartTag::subtract_to_zero(flow.tag, least));
    flow.tag -= back;
    debts_.owe(index, StartTag::subtract_to_zero(owed, back));
  }
  settle_debt(flow, index, now);
  return true;
}

}  // namespace vpfs
