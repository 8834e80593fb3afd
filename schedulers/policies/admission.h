#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// A flow's promise [PCLOCK]: in any interval of length t the flow asks for at most burst + rate x t
// of cost, and each request is done `latency` after its arrival.
struct ArrivalCurve {
  Cost burst = 0;
  std::uint64_t rate = 0;  // cost/s
  Duration latency = {};

  bool operator==(const ArrivalCurve&) const = default;
};

// Says which arrival curves a data server can keep together. Serving the earliest deadline first
// keeps all of them if for every t that is one of the latencies or longer than one
//
//   sum over i with latency_i <= t of ( burst_i + rate_i (t - latency_i) )  <=  capacity t - ahead
//   sum of rate_i <= capacity
//
// where `ahead` is the most cost that may already be at the server when a request becomes the most
// urgent one. The left side is linear between two latencies, so checking the latencies suffices
// once the rates fit.
class Admission {
 public:
  // `capacity` in cost/s, 1 ... 2^62.
  Admission(std::uint64_t capacity, Cost ahead) : capacity_(capacity), ahead_(ahead) {}

  // Whether the curve fits beside the admitted ones. An admitted curve of `app` itself does not
  // count.
  [[nodiscard]] bool fits(AppId app, const ArrivalCurve& curve) const;
  // Counts the curve as admitted. It replaces the flow's other curve, if any.
  void admit(AppId app, const ArrivalCurve& curve);
  void leave(AppId app);

  // The shortest latency, to the microsecond, at which the curve fits; nothing if it is above a
  // day.
  [[nodiscard]] std::optional<Duration> least_latency(AppId app, ArrivalCurve curve) const;
  // The curve for "this much by a time": `total` within `span`, with the last request done at its
  // end. Nothing if the span is not longer than `latency`.
  [[nodiscard]] static std::optional<ArrivalCurve> curve_of(Cost total, Cost burst, Duration span,
                                                            Duration latency);
  // The shortest span, to the millisecond, within which `total` fits; nothing if it is above a
  // hundred days.
  [[nodiscard]] std::optional<Duration> least_span(AppId app, Cost total, Cost burst,
                                                   Duration latency) const;

 private:
  struct Admitted {
    AppId app;
    ArrivalCurve curve;
  };

  std::uint64_t capacity_;
  Cost ahead_;
  std::vector<Admitted> admitted_;  // by latency
};

}  // namespace vpfs
