#include "schedulers/policies/admission.h"

#include <algorithm>
#include <vector>

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

bool Admission::fits(AppId app, const ArrivalCurve& curve) const {
  std::vector<ArrivalCurve> curves = {curve};
  SignedWide rates_of_all = curve.rate;
  for (const auto& [other, admitted] : curves_) {
    if (other == app) continue;
    curves.push_back(admitted);
    rates_of_all += admitted.rate;
  }
  if (rates_of_all > SignedWide{capacity_}) return false;
  std::ranges::sort(curves, {}, &ArrivalCurve::latency);
  // Both sides times 10^9; at a latency t, `constant` is the sum of burst - rate x latency. Rates
  // that sum to 2^62 make 2^125 in 2^63 ns (292 years).
  SignedWide rates = 0;
  SignedWide constant = 0;
  for (auto each = curves.begin(); each != curves.end(); ++each) {
    const SignedWide t = each->latency.count();
    rates += each->rate;
    constant += SignedWide{each->burst} * kNanosecondsPerSecond - SignedWide{each->rate} * t;
    const bool last_of_its_latency = each + 1 == curves.end() || (each + 1)->latency.count() != t;
    if (last_of_its_latency &&
        constant + rates * t >
            SignedWide{capacity_} * t - SignedWide{ahead_} * kNanosecondsPerSecond) {
      return false;
    }
  }
  return true;
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
