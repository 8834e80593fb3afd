// The part of Edf for a successor in another process.
#include <algorithm>

#include "schedulers/policies/edf.h"
#include "schedulers/time_tag.h"

namespace vpfs {

void Edf::save_all(TimePoint /*now*/, SavedState& to) {
  StateWriter(to.add_list("edf").emplace_back())("shift", shift_);
}

void Edf::restore_all(const SavedState& from, TimePoint /*now*/) {
  if (from.list("edf").empty()) return;
  Duration shift = shift_;
  StateReader(from.child("edf"))("shift", shift);
  set_shift(std::clamp(shift, Duration::zero(), Duration(std::int64_t{1} << 58)));
}

void Edf::save(AppId app, TimePoint /*now*/, SavedState& to) {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return;
  Flow& flow = flows_[index];
  SavedState& mine = to.add_list("edf").emplace_back();
  StateWriter out(mine);
  out("misses", flow.misses);
  out("worst_tardiness", flow.worst_tardiness);
  SavedState::Numbers arrivals;
  for (const IoRequest* each = flow.queue.front(); each != nullptr; each = each->next_queued) {
    arrivals.push_back(each->tag);
  }
  mine.set("arrivals", std::move(arrivals));
  if (!flow.promised) return;
  out("bucket", flow.bucket);
  out("since", flow.since);
}

// A request's tag is its arrival on the clock of starts. Where the queue is another one, it is
// taken from the arrival: no earlier than it was.
void Edf::restore(AppId app, const SavedState& from, TimePoint now) {
  const auto index = std::to_underlying(app);
  const SavedState& saved = from.child("edf");
  if (index >= flows_.size() || saved == SavedState()) return;
  Flow& flow = flows_[index];
  StateReader in(saved);
  in("misses", flow.misses);
  in("worst_tardiness", flow.worst_tardiness);
  const auto* const arrivals = saved.find<SavedState::Numbers>("arrivals");
  const bool same = arrivals != nullptr && arrivals->size() == flow.account.queued;
  std::size_t at = 0;
  for (IoRequest* each = flow.queue.front(); each != nullptr; each = each->next_queued, ++at) {
    each->tag = same ? (*arrivals)[at] : time_tag(each->arrival + shift_);
  }
  const bool has_bucket = !saved.list("bucket").empty();
  if (flow.promised && has_bucket) {
    TokenBucket bucket;
    in("bucket", bucket);
    if (bucket.rate() != flow.bucket.rate() || bucket.depth() != flow.bucket.depth()) {
      bucket.change(flow.bucket.rate(), flow.bucket.depth(), on_start_clock(now));
    }
    flow.bucket = bucket;
    in("since", flow.since);
  } else if (flow.promised) {
    flow.since = on_start_clock(now);
  }
  if (!flow.queue.empty()) place(index, now);
}

}  // namespace vpfs
