// The part of AdapTbf for a successor in another process.
#include <algorithm>

#include "schedulers/policies/adaptbf.h"

namespace vpfs {

void AdapTbfAllocator::save(Job job, SavedState& to) {
  if (job >= accounts_.size()) return;
  Account& account = accounts_[job];
  StateWriter out(to);
  out("record", account.record);
  out("tokens", account.tokens);
  out("remainder", account.remainder);
  to.set("is_recent", std::uint64_t{account.period == period_});
}

void AdapTbfAllocator::restore(Job job, const SavedState& from) {
  if (from == SavedState()) return;
  if (job >= accounts_.size()) accounts_.resize(std::size_t{job} + 1);
  Account& account = accounts_[job];
  StateReader in(from);
  in("record", account.record);
  in("tokens", account.tokens);
  in("remainder", account.remainder);
  account.period = from.number("is_recent") != 0 ? period_ : 0;
}

void AdapTbfAllocator::end_missing() {
  std::int64_t sum = 0;
  for (const Account& account : accounts_) sum += account.record;
  if (sum == 0) return;
  const auto missing = static_cast<Job>(accounts_.size());
  accounts_.push_back({.record = -sum});
  end(missing);
  accounts_.pop_back();
}

void AdapTbf::restored(TimePoint now) {
  finish_ending(now);
  allocator_.end_missing();
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) jobs_[job].record = allocator_.record(job);
}

void AdapTbf::save_all(TimePoint now, SavedState& to) {
  finish_ending(now);
  SavedState& mine = to.add_list("adaptbf").emplace_back();
  StateWriter out(mine);
  out("capacity", capacity_);
  out("period_start", period_start_);
  out("observed_since", observed_since_);
  out("observed_done", observed_.done);
  out("observed_always_queued", observed_.always_queued);
  out("observed_waited_for_tokens", observed_.waited_for_tokens);
  out("started", started_);
}

void AdapTbf::restore_all(const SavedState& from, TimePoint now) {
  const SavedState& saved = from.child("adaptbf");
  if (saved == SavedState()) return;
  finish_ending(now);
  StateReader in(saved);
  in("capacity", capacity_);
  in("period_start", period_start_);
  in("observed_since", observed_since_);
  in("observed_done", observed_.done);
  in("observed_always_queued", observed_.always_queued);
  in("observed_waited_for_tokens", observed_.waited_for_tokens);
  in("started", started_);
  period_start_ = std::min(period_start_, now);
  observed_since_ = std::clamp(observed_since_, period_start_, now);
}

void AdapTbf::save(AppId app, TimePoint /*now*/, SavedState& to) {
  const auto index = static_cast<std::uint32_t>(app);
  if (index >= jobs_.size()) return;
  Job& job = job_of(index);
  SavedState& mine = to.add_list("adaptbf").emplace_back();
  StateWriter out(mine);
  out("asked", job.asked);
  out("asked_before", job.asked_before);
  out("lent", job.lent);
  out("borrowed", job.borrowed);
  out("active", job.active);
  out("has_bucket", job.has_bucket);
  allocator_.save(index, mine.add_list("account").emplace_back());
  if (!job.has_bucket) return;
  mine.set("rate", limits_.rate(app));
  mine.set("burst", limits_.burst(app));
  limits_.save(app, mine.add_list("limits").emplace_back());
}

// What is queued again has asked in the period; the job's own account of it is what counts.
void AdapTbf::restore(AppId app, const SavedState& from, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(app);
  const SavedState& saved = from.child("adaptbf");
  if (index >= jobs_.size() || saved == SavedState()) return;
  finish_ending(now);
  Job& job = job_of(index);
  StateReader in(saved);
  in("asked", job.asked);
  in("asked_before", job.asked_before);
  in("lent", job.lent);
  in("borrowed", job.borrowed);
  allocator_.restore(index, saved.child("account"));
  job.record = allocator_.record(index);
  if (saved.number("active") != 0 && !std::exchange(job.active, true)) active_.push_back(index);
  if (saved.number("has_bucket") != 0) {
    if (!std::exchange(job.has_bucket, true)) with_bucket_.push_back(index);
    job.bucket_period = static_cast<std::uint8_t>(period_);
    limits_.set_rate(app, saved.number("rate"), saved.number("burst"), true, now);
    tbf_.limits_changed(app, now);  // the queue is a backlog from now on
    limits_.restore(app, saved.child("limits"), now);
  }
  tbf_.limits_changed(app, now);
}

}  // namespace vpfs
