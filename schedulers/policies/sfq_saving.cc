// The part of Sfq for a successor in another process.
#include <algorithm>
#include <utility>

#include "schedulers/policies/sfq.h"

namespace vpfs {
namespace {
// Tags are below it, whoever saved them.
constexpr StartTag::Tag kMostTag = (StartTag::Tag{1} << 63) - 1;
constexpr StartTag::Tag kMostAmount = StartTag::Tag{1} << 60;
}  // namespace

void Sfq::save_all(TimePoint /*now*/, SavedState& to) {
  SavedState& mine = to.add_list("sfq").emplace_back();
  StateWriter out(mine);
  out("order", order_);
  if (siblings_.exist()) out("siblings", siblings_.bound());
  if (anticipation_) out("anticipation", *anticipation_);
}

// Flows that nothing was saved of begin at v.
void Sfq::restore_all(const SavedState& from, TimePoint now) {
  const SavedState& saved = from.child("sfq");
  if (saved == SavedState()) return;
  StateReader in(saved);
  in("order", order_);
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    if (flows_[index].queue.empty()) continue;
    start_not_before(flows_[index], 0);
    place_again(index, now);
  }
  if (siblings_.exist()) in("siblings", siblings_.bound());
  if (anticipation_) in("anticipation", *anticipation_);
}

void Sfq::save(AppId app, TimePoint /*now*/, SavedState& to) {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return;
  Flow& flow = flows_[index];
  SavedState& mine = to.add_list("sfq").emplace_back();
  StateWriter out(mine);
  out("tag", flow.tag);
  out("credit", flow.credit);
  mine.set("weight", flow.weight.divisor());
  mine.set("remainder", std::uint64_t{flow.remainder()});
  SavedState::Numbers amounts;
  for (const IoRequest* each = flow.queue.front(); each != nullptr; each = each->next_queued) {
    amounts.push_back(each->tag);
  }
  mine.set("amounts", std::move(amounts));
  mine.set("in_debt", std::uint64_t{flow.in_debt});
  mine.set("is_charged_elsewhere", std::uint64_t{flow.is_charged_elsewhere});
  if (flow.has_min) {
    TimePoint due = minimums_.due(index);
    out("due", due);
  }
  if (index < debts_.size()) debts_.archive_flow(index, out);
  if (anticipation_) anticipation_->archive_flow(index, out);
}

// The head has the start tag that it had, so the flow goes on where it was.
void Sfq::restore(AppId app, const SavedState& from, TimePoint now) {
  const auto index = std::to_underlying(app);
  const SavedState& saved = from.child("sfq");
  if (index >= flows_.size() || saved == SavedState()) return;
  Flow& flow = flows_[index];
  StateReader in(saved);
  take_out(index);
  in("tag", flow.tag);
  in("credit", flow.credit);
  flow.tag = std::min(flow.tag, kMostTag);
  // What each request moves the tag by, to the last bit of the division.
  const auto* const amounts = saved.find<SavedState::Numbers>("amounts");
  const bool same = amounts != nullptr && amounts->size() == flow.account.queued &&
                    saved.number("weight") == flow.weight.divisor();
  if (same) {
    flow.set_remainder(saved.number("remainder"));
    std::size_t at = 0;
    for (IoRequest* each = flow.queue.front(); each != nullptr; each = each->next_queued) {
      each->tag = std::min((*amounts)[at++], kMostAmount);
    }
  }
  flow.in_debt = false;
  if (!saved.list("debt").empty()) {
    if (debts_.size() < flows_.size()) grow_debts();
    debts_.archive_flow(index, in);
    flow.in_debt = saved.number("in_debt") != 0;
    flow.is_charged_elsewhere = saved.number("is_charged_elsewhere") != 0;
  }
  if (flow.has_min) {
    TimePoint due = minimums_.due(index);
    in("due", due);
    minimums_.set_due(index, due);
  }
  if (anticipation_) anticipation_->archive_flow(index, in);
  if (flow.queue.empty()) {
    flow.end_backlog();
    if (anticipation_) expect(flow, index);
  } else {
    place(index, now);
  }
}

}  // namespace vpfs
