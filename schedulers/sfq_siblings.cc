// The part of Sfq that counts what the other schedulers of the data server serve.
#include <algorithm>
#include <utility>

#include "schedulers/sfq.h"

namespace vpfs {
namespace {

// Requests give back what they were charged too much, which is less than any service since.
constexpr StartTag::Tag kMostGivenBack = StartTag::Tag{1} << 61;

}  // namespace

Sfq::~Sfq() {
  if (total_ == nullptr) return;
  std::uint32_t index = 0;
  for (const Flow& flow : flows_) {
    total_->left(index++, flow.account.queued + flow.account.outstanding, TimePoint::min());
  }
}

void Sfq::grow_siblings() {
  if (total_ == nullptr) return;
  total_->grow(flows_.size());
  for (auto index = static_cast<std::uint32_t>(seen_.size()); index < flows_.size(); ++index) {
    const TotalService::Row& row = (*total_)[index];
    seen_.push_back({.served = row.served, .returns = row.returns});
  }
}

void Sfq::end_busy_period_of_all() {
  if (total_ == nullptr || idle_moments_ == total_->idle_moments()) return;
  idle_moments_ = total_->idle_moments();
  end_busy_period();
}

// REQUIRES: the request that has come is counted in the flow's account.
bool Sfq::comes_from_siblings(const Flow& flow, std::uint32_t index, TimePoint now) {
  const TotalService::Row& row = (*total_)[index];
  const bool was_away = std::exchange(seen_[index].returns, row.returns) != row.returns;
  const bool was_served = catch_up(index, now);
  return !was_away && (was_served || is_at_siblings(flow, index));
}

bool Sfq::catch_up(std::uint32_t index, TimePoint now) {
  const StartTag::Tag served = (*total_)[index].served;
  const StartTag::Tag by = served - std::exchange(seen_[index].served, served);
  if (by == 0) return false;
  Flow& flow = flows_[index];
  Debt& debt = debts_[index];
  debt.delay = longest_delay(debt);
  const Tag most = most_owed(flow, debt);
  // v may have passed the tag of a flow that had no request here.
  const Tag before =
      flow.in_debt ? StartTag::subtract_to_zero(flow.tag, tag_without_debt(index)) : 0;
  if (Tag{0} - by >= kMostGivenBack) {
    const Tag claim = StartTag::subtract_to_zero(virtual_time_, flow.tag);
    const Tag room = StartTag::subtract_to_zero(most, before) + claim;
    const Tag moved = move_ahead(flow, std::min(by, room), ahead(flow, kMaxCost));
    debt.owed = before + StartTag::subtract_to_zero(moved, claim);
  } else {
    // Requests did less there than was charged when they were sent.
    const Tag least = StartTag::subtract_to_zero(virtual_time_, siblings_bound_.most(flow));
    const Tag back = std::min(Tag{0} - by, StartTag::subtract_to_zero(flow.tag, least));
    flow.tag -= back;
    debt.owed = StartTag::subtract_to_zero(before, back);
  }
  settle_debt(flow, index, now);
  return true;
}

}  // namespace vpfs
