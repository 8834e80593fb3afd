#include "schedulers/policies/debt_book.h"

#include <utility>

#include "base/wide.h"

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
constexpr DebtBook::Tag kGently = 4;  // the part of a difference that counts
// Keeps sums of debts from overflowing; the distance of a tag from v is bounded anyway.
constexpr DebtBook::Tag kMostOwed = DebtBook::Tag{1} << 60;

}  // namespace

void DebtBook::set_reported_delay(std::uint32_t flow, Duration delay) {
  rows_[flow].reported_delay = std::clamp(delay, Duration::zero(), kLongestDelay);
}

bool DebtBook::take_report(std::uint32_t flow, Cost elsewhere) {
  Row& row = rows_[flow];
  const bool is_first = !std::exchange(row.has_report, true);
  const Sent matching = std::exchange(row.before, std::exchange(row.sent, {}));
  if (is_first && elsewhere == 0) {
    row.learning = kToLearn;
    return false;
  }
  Span& span = row.span;
  span.own += matching.own;
  span.charged = std::min(span.charged + matching.charged, kMostOwed);
  span.elsewhere = std::min(span.elsewhere + elsewhere, kMaxCost);
  if (span.elsewhere == 0 && span.charged == 0) return false;
  return span.own + span.elsewhere >= kLeastCounted * row.request;
}

DebtBook::Correction DebtBook::count(std::uint32_t flow, Tag reported, Tag owed) {
  Row& row = rows_[flow];
  const Tag charged = row.span.charged;
  row.close_span(reported);
  // Nothing could be charged in advance for that time.
  if (row.learning > 0) return {};
  const Tag part = row.is_charged_well() ? kGently : 1;
  if (reported >= charged) return {.more = (reported - charged) / part};
  const Tag over = (charged - reported) / part;
  const Tag back = std::min(over, owed);
  row.overcharged = std::min(row.overcharged + (over - back), row.most);
  return {.back = back};
}

void DebtBook::Row::close_span(Tag reported) {
  const Span done = std::exchange(span, {});
  // A flow that is sent nothing here has nothing to learn from.
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

DebtBook::Tag DebtBook::charge_in_advance(std::uint32_t flow, Cost cost, Tag amount, Tag owed,
                                          Tag room) {
  Row& row = rows_[flow];
  row.request = cost;
  row.sent.own = std::min(row.sent.own + cost, kMaxCost);
  const Wide exact = Wide{amount} * row.ratio >> kElsewhereBits;
  const auto wanted = static_cast<Tag>(std::min<Wide>(exact, row.most));
  const Tag less = std::min(wanted, row.overcharged);
  row.overcharged -= less;
  const Tag more = std::min(wanted - less, StartTag::subtract_to_zero(row.most + room, owed));
  row.sent.charged = std::min(row.sent.charged + more + less, kMostOwed);
  return more;
}

}  // namespace vpfs
