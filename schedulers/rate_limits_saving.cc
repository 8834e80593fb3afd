// The part of RateLimits for a successor.
#include "schedulers/rate_limits.h"

namespace vpfs {

void RateLimits::save(AppId app, SavedState& to) {
  if (!has_row(app)) return;
  Limit& limit = limits_[index(app)];
  StateWriter out(to);
  if ((limit.kinds & kBytes) != 0) out("bytes", limit.bytes);
  if ((limit.kinds & kOperations) != 0) out("operations", limit.operations);
  out("backlog_since", limit.backlog_since);
  if (!is_allocated(app)) return;
  out("allocated_bytes", allocated_[index(app)].bytes);
  out("allocated_operations", allocated_[index(app)].operations);
  if (index(app) < metadata_.size()) out("allocated_metadata", metadata_[index(app)].limit);
}

void RateLimits::restore(AppId app, const SavedState& from, TimePoint now) {
  if (!has_row(app)) return;
  Limit& limit = limits_[index(app)];
  StateReader in(from);
  // The rates are the present ones; what is missing in a bucket is as it was.
  const auto take_on = [&](std::uint8_t kind, std::string_view name, TokenBucket& bucket) {
    if ((limit.kinds & kind) == 0 || from.list(name).empty()) return;
    TokenBucket saved;
    in(name, saved);
    if (saved.rate() != bucket.rate() || saved.depth() != bucket.depth()) {
      saved.fit(bucket.rate(), bucket.depth(), now);
    }
    bucket = saved;
  };
  take_on(kBytes, "bytes", limit.bytes);
  take_on(kOperations, "operations", limit.operations);
  if (limit.queues > 0) in("backlog_since", limit.backlog_since);
  if (!is_allocated(app)) return;
  in("allocated_bytes", allocated_[index(app)].bytes);
  in("allocated_operations", allocated_[index(app)].operations);
  if (index(app) < metadata_.size()) in("allocated_metadata", metadata_[index(app)].limit);
  fit_allocated(app, now);
}

}  // namespace vpfs
