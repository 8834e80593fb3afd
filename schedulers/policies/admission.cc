#include "schedulers/policies/admission.h"

#include <algorithm>
#include <cstddef>

#include "base/clock.h"
#include "base/wide.h"
#include "schedulers/share.h"

namespace vpfs {
namespace {

// The smallest multiple of `step` up to `most` that `good` accepts. REQUIRES: `good` is monotonic:
// it accepts everything above an accepted value.
template <typename Good>
std::optional<Duration> least(Duration step, Duration most, Good good) {
  std::int64_t low = 0;
  std::int64_t high = most / step;
  if (!good(step * high)) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (good(step * middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return step * high;
}

}  // namespace

void Admission::admit(AppId app, const ArrivalCurve& curve) {
  leave(app);
  const auto place = std::ranges::upper_bound(
      admitted_, curve.latency, {}, [](const Admitted& each) { return each.curve.latency; });
  admitted_.insert(place, {.app = app, .curve = curve});
}

void Admission::leave(AppId app) {
  const auto own = std::ranges::find(admitted_, app, &Admitted::app);
  if (own != admitted_.end()) admitted_.erase(own);
}

bool Admission::fits(AppId app, const ArrivalCurve& curve) const {
  SignedWide rates_of_all = curve.rate;
  for (const Admitted& each : admitted_) {
    if (each.app != app) rates_of_all += each.curve.rate;
  }
  if (rates_of_all > SignedWide{capacity_}) return false;
  // Both sides times 10^9; at a latency t, `constant` is the sum of burst - rate x latency. Rates
  // that sum to 2^62 make 2^125 in 2^63 ns (292 years).
  SignedWide rates = 0;
  SignedWide constant = 0;
  const auto add = [&](const ArrivalCurve& each) {
    const SignedWide t = each.latency.count();
    rates += each.rate;
    constant += SignedWide{each.burst} * kNanosecondsPerSecond - SignedWide{each.rate} * t;
  };
  const auto is_met_at = [&](Duration latency) {
    const SignedWide t = latency.count();
    return constant + rates * t <=
           SignedWide{capacity_} * t - SignedWide{ahead_} * kNanosecondsPerSecond;
  };
  bool is_added = false;
  for (std::size_t i = 0; i < admitted_.size();) {
    Duration latency = admitted_[i].curve.latency;
    if (!is_added && curve.latency <= latency) {
      latency = curve.latency;
      add(curve);
      is_added = true;
    }
    bool has_others = is_added && latency == curve.latency;
    // All of one latency count at it.
    for (; i < admitted_.size() && admitted_[i].curve.latency == latency; ++i) {
      if (admitted_[i].app == app) continue;
      add(admitted_[i].curve);
      has_others = true;
    }
    if (has_others && !is_met_at(latency)) return false;
  }
  if (is_added) return true;
  add(curve);
  return is_met_at(curve.latency);
}

std::optional<Duration> Admission::least_latency(AppId app, ArrivalCurve curve) const {
  return least(std::chrono::microseconds(1), std::chrono::hours(24), [&](Duration latency) {
    curve.latency = latency;
    return fits(app, curve);
  });
}

std::optional<ArrivalCurve> Admission::curve_of(Cost total, Cost burst, Duration span,
                                                Duration latency) {
  if (span <= latency) return std::nullopt;
  const SignedWide time = (span - latency).count();
  const SignedWide rate = (SignedWide{total} * kNanosecondsPerSecond + time - 1) / time;
  if (rate > SignedWide{Share::kMaxRate}) return std::nullopt;
  return ArrivalCurve{.burst = burst, .rate = static_cast<std::uint64_t>(rate), .latency = latency};
}

std::optional<Duration> Admission::least_span(AppId app, Cost total, Cost burst,
                                              Duration latency) const {
  return least(std::chrono::milliseconds(1), std::chrono::hours(2400), [&](Duration span) {
    const std::optional<ArrivalCurve> curve = curve_of(total, burst, span, latency);
    return curve && fits(app, *curve);
  });
}

}  // namespace vpfs
