#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// What a flow may ask for in any interval of length t: at most burst + rate x t of cost, each
// request of it done `latency` after it came [PCLOCK].
struct ArrivalCurve {
  Cost burst = 0;
  std::uint64_t rate = 0;  // cost/s
  Duration latency = {};

  bool operator==(const ArrivalCurve&) const = default;
};

// Says which arrival curves a data server can keep together. All of them are kept by serving the
// earliest deadline first when for every t that is one of the latencies or longer than one
//
//   sum over i with latency_i <= t of ( burst_i + rate_i (t - latency_i) )  <=  capacity t - ahead
//   sum of rate_i <= capacity
//
// where `ahead` is the most cost that may stand at the server before a request that has just become
// the most urgent one. Between two latencies the left side is linear, so only the latencies
// themselves have to be looked at, once the rates fit.
class Admission {
 public:
  // `capacity` in cost/s, 1 ... 2^62.
  Admission(std::uint64_t capacity, Cost ahead) : capacity_(capacity), ahead_(ahead) {}

  // Whether the curve fits beside the admitted ones (that of `app` itself, if any, not counted).
  [[nodiscard]] bool fits(AppId app, const ArrivalCurve& curve) const;
  // Counts the curve as admitted, instead of any other of this flow.
  void admit(AppId app, const ArrivalCurve& curve) { curves_[app] = curve; }
  void leave(AppId app) { curves_.erase(app); }

  // The shortest latency, to the microsecond, at which the curve would fit; nothing if none below
  // a day would do.
  [[nodiscard]] std::optional<Duration> least_latency(AppId app, ArrivalCurve curve) const;
  // For "this much by a time": the curve of `total` within `span`, whose last request is done at
  // its end; nothing when the span is no longer than `latency`.
  [[nodiscard]] static std::optional<ArrivalCurve> curve_of(Cost total, Cost burst, Duration span,
                                                            Duration latency);
  // The shortest span, to the millisecond, within which `total` would fit; nothing if none below a
  // hundred days would do.
  [[nodiscard]] std::optional<Duration> least_span(AppId app, Cost total, Cost burst,
                                                   Duration latency) const;

 private:
  std::uint64_t capacity_;
  Cost ahead_;
  std::map<AppId, ArrivalCurve> curves_;
};

}  // namespace vpfs
