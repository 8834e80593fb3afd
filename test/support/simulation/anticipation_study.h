#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace vpfs {

// Two applications on one data server in virtual time, with and without anticipation. `a` has few
// requests in flight and thinks after each answer; `b` always has its requests in flight.
struct AnticipationCase {
  std::uint32_t in_flight_a = 1;
  std::uint32_t in_flight_b = 16;
  std::uint32_t weight = 1;  // of a; b has 1
  std::uint64_t size = 0;    // of every request
  std::uint32_t parallelism = 1;
  Duration think = {};
};

struct AnticipationRow {
  AnticipationCase of;
  // The bytes of a divided by those of b.
  double ratio_off = 0;
  double ratio_on = 0;
  double feasible_ratio = 0;
  double total_vs_fifo = 0;  // with anticipation
  double idle_percent = 0;   // of the server's time, with anticipation

  // Whether the ratio is within 5 % of the feasible one.
  [[nodiscard]] bool is_met() const;
  // Whether the total is down by what may be lost.
  [[nodiscard]] bool is_at_bound(double max_loss) const;
};

struct AnticipationStudy {
  std::uint32_t depth = 16;         // at least twice the parallelism is used
  std::uint32_t max_loss = 100;     // thousandths
  double spread = 0;                // of the think time, uniform, as a part of its mean
  std::uint32_t late_one_in = 0;    // one think in so many takes five times as long; 0: none
  std::uint64_t requests = 20'000;  // before the measurement; twice as many in it
  std::uint64_t speed = 400 << 20;  // of the data server, bytes per second
  Duration per_request = std::chrono::microseconds(100);

  [[nodiscard]] AnticipationRow run(const AnticipationCase& of) const;

 private:
  struct Totals {
    double a = 0;  // bytes per second
    double b = 0;
    double idle = 0;
  };
  [[nodiscard]] Totals measure(const char* policy, bool anticipates, std::uint64_t count,
                               const AnticipationCase& of) const;
};

// Every case of the study: 864.
[[nodiscard]] std::vector<AnticipationCase> all_anticipation_cases();

}  // namespace vpfs
