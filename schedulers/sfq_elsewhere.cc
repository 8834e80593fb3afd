// The part of Sfq that counts service elsewhere.
#include <algorithm>
#include <utility>

#include "base/wide.h"
#include "schedulers/sfq.h"
#include "schedulers/time_tag.h"

namespace vpfs {
namespace {

// Keeps times from overflowing.
constexpr Duration kLongestDelay = Duration(std::int64_t{1} << 60);
// The ratio of service elsewhere to service here.
constexpr int kElsewhereBits = 16;
constexpr std::uint64_t kMostRatio = 1024;
constexpr Cost kLately = 8;           // spans, about
constexpr Cost kLeastCounted = 8;     // requests, here and elsewhere
constexpr std::uint8_t kToLearn = 3;  // spans: one from before, one to count, one without charge
constexpr StartTag::Tag kGently = 4;  // the part of a difference that counts
// Keeps sums of debts from overflowing; the distance of a tag from v is bounded anyway.
constexpr StartTag::Tag kMostOwed = StartTag::Tag{1} << 60;

}  // namespace

TimePoint Sfq::debt_lets_go_at(std::uint32_t index, TimePoint now) const {
  return std::min(now + debts_[index].delay, limits_.passes_at(flows_.oldest_arrival(index)));
}

Sfq::Tag Sfq::tag_without_debt(std::uint32_t index) const {
  return std::max(virtual_time_, StartTag::subtract_to_zero(flows_[index].tag, debts_[index].owed));
}

// One debt is for what a flow got from the others of its server and for what it got elsewhere.
Sfq::Tag Sfq::most_owed(const Flow& flow, const Debt& debt) const {
  return debt.most + (total_ != nullptr ? siblings_bound_.most(flow) : 0);
}

Duration Sfq::longest_delay(const Debt& debt) const {
  return total_ != nullptr ? std::max(debt.elsewhere_delay, total_->longest_delay())
                           : debt.elsewhere_delay;
}

void Sfq::end_holds_by_debt(TimePoint now) {
  while (!indebted_.empty() && time_of(indebted_.top_tag()) <= now) {
    place_in_order(indebted_.top(), now);
  }
}

void Sfq::grow_debts() {
  debts_.resize(flows_.size());
  indebted_.grow(flows_.size());
}

void Sfq::served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now) {
  if (debts_.empty()) grow_debts();
  end_busy_period_of_all();
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  Debt& debt = debts_[index];
  debt.elsewhere_delay = std::clamp(delay, Duration::zero(), kLongestDelay);
  debt.delay = longest_delay(debt);
  if (!debt.take_report(std::min(cost, kMaxCost))) return;
  const bool has_head = !flow.queue.empty();
  // What its limit holds back has no claim. Nor has who has nothing here, unless he comes back
  // soon.
  const bool may_claim =
      anticipation_ && (has_head || anticipation_->may_return(index, now)) && !flow.has_limit;
  const bool at_siblings =
      total_ != nullptr && (has_head || is_at_siblings(flow, index)) && !flow.has_limit;
  flow.tag = std::max(flow.tag, tag_of_first(flow, most_behind(flow, may_claim, at_siblings)));
  // Service elsewhere takes from the claim first.
  const Tag claim = StartTag::subtract_to_zero(virtual_time_, flow.tag);
  const Tag all = flow.next_amount(std::min(debt.span.elsewhere, kMaxCost));
  const Tag charged = debt.span.charged;
  debt.close_span(all);
  Tag before = flow.in_debt && claim == 0 ? flow.tag - tag_without_debt(index) : 0;
  const Tag part = debt.is_charged_well() ? kGently : 1;
  if (debt.is_learning()) {
    // Nothing could be charged in advance for that time.
  } else if (all >= charged) {
    const Tag room = StartTag::subtract_to_zero(most_owed(flow, debt), before) + claim;
    const Tag moved =
        move_ahead(flow, std::min((all - charged) / part, room), ahead(flow, kMaxCost));
    before += StartTag::subtract_to_zero(moved, claim);
  } else {
    const Tag over = (charged - all) / part;
    const Tag back = std::min(over, before);
    flow.tag -= back;
    before -= back;
    debt.overcharged = std::min(debt.overcharged + (over - back), debt.most);
  }
  debt.owed = before;
  settle_debt(flow, index, now);
}

void Sfq::settle_debt(Flow& flow, std::uint32_t index, TimePoint now) {
  Debt& debt = debts_[index];
  if (flow.queue.empty()) {
    flow.in_debt = debt.owed > 0;
    expect_by_new_tag(index);
    return;
  }
  if (debt.owed == 0) {
    if (std::exchange(flow.in_debt, false)) return place_again(index, now);
    if (ready_.contains(index)) tag_has_changed(index);
    return;
  }
  const TimePoint due = debt_lets_go_at(index, now);
  debt.due = std::exchange(flow.in_debt, true) ? std::min(debt.due, due) : due;
  place_again(index, now);
}

bool Sfq::Debt::take_report(Cost elsewhere) {
  const bool is_first = !std::exchange(counts, true);
  const Sent matching = std::exchange(before, std::exchange(sent, {}));
  if (is_first && elsewhere == 0) {
    learning = kToLearn;
    return false;
  }
  span.own += matching.own;
  span.charged = std::min(span.charged + matching.charged, kMostOwed);
  span.elsewhere = std::min(span.elsewhere + elsewhere, kMaxCost);
  if (span.elsewhere == 0 && span.charged == 0) return false;
  return span.own + span.elsewhere >= kLeastCounted * request;
}

void Sfq::Debt::close_span(Tag reported) {
  const Span done = std::exchange(span, {});
  // Who is sent nothing here has nothing to learn from.
  if (learning > 0) learning = done.own + before.own > 0 ? learning - 1 : 0;
  if (reported > 0)
    most = std::max(most - most / kLately, std::min(kMostReports * reported, kMostOwed));
  if (done.own == 0 && lately.own == 0) return;
  lately.own += done.own - lately.own / kLately;
  lately.elsewhere += done.elsewhere - lately.elsewhere / kLately;
  lately.charged += done.charged / kLately - lately.charged / kLately;
  reported_lately += reported / kLately - reported_lately / kLately;
  if (lately.own == 0) return;
  ratio = std::min((lately.elsewhere << kElsewhereBits) / lately.own, kMostRatio << kElsewhereBits);
}

void Sfq::charge_in_advance(Flow& flow, std::uint32_t index, const IoRequest& request) {
  Debt& debt = debts_[index];
  debt.request = request.cost;
  debt.sent.own = std::min(debt.sent.own + request.cost, kMaxCost);
  const Wide exact = Wide{request.tag} * debt.ratio >> kElsewhereBits;
  auto wanted = static_cast<Tag>(std::min<Wide>(exact, debt.most));
  const Tag less = std::min(wanted, debt.overcharged);
  debt.overcharged -= less;
  const Tag before = flow.in_debt ? debt.owed : 0;
  const Tag more =
      std::min(wanted - less, StartTag::subtract_to_zero(most_owed(flow, debt), before));
  debt.sent.charged = std::min(debt.sent.charged + more + less, kMostOwed);
  if (more == 0) return;
  flow.tag += more;
  // A flow that came back as expected may be behind v even so.
  debt.owed = std::min(before + more, StartTag::subtract_to_zero(flow.tag, virtual_time_));
  flow.in_debt = debt.owed > 0;
}

void Sfq::forget_elsewhere(TimePoint now) {
  for (std::uint32_t index = 0; index < debts_.size(); ++index) {
    Flow& flow = flows_[index];
    if (flow.in_debt) flow.tag = tag_without_debt(index);
    expect_by_new_tag(index);
    debts_[index] = {};
    if (std::exchange(flow.in_debt, false) && !flow.queue.empty()) place_again(index, now);
  }
}

}  // namespace vpfs
