#include "test/support/simulation/anticipation_study.h"

#include <algorithm>

#include "base/clock.h"
#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

constexpr double kTolerance = 0.05;
constexpr double kBoundTolerance = 0.015;

}  // namespace

bool AnticipationRow::is_met() const {
  const double off = ratio_on / feasible_ratio - 1;
  return off >= -kTolerance && off <= kTolerance;
}

bool AnticipationRow::is_at_bound(double max_loss) const {
  return total_vs_fifo <= 1 - max_loss + kBoundTolerance;
}

AnticipationStudy::Totals AnticipationStudy::measure(const char* policy, bool anticipates,
                                                     std::uint64_t count,
                                                     const AnticipationCase& of) const {
  SchedulerSettings settings = {.depth = {.requests = std::max(depth, 2 * of.parallelism)}};
  settings.own.set(AnticipationSettings{.on = anticipates, .max_loss = max_loss});
  const auto scheduler = make_scheduler(policy, settings).value();
  const auto half = static_cast<double>(of.think.count()) * spread;
  const FlowWork a = {.share = {.weight = of.weight},
                      .outstanding = of.in_flight_a,
                      .least_size = of.size,
                      .most_size = of.size,
                      .think = of.think,
                      .think_spread = Duration(static_cast<std::int64_t>(half)),
                      .late_one_in = late_one_in};
  const FlowWork b = {
      .share = {}, .outstanding = of.in_flight_b, .least_size = of.size, .most_size = of.size};
  FlowSimulation simulation(
      *scheduler,
      {.parallelism = of.parallelism, .cost_per_second = speed, .per_request = per_request}, {a, b},
      1);
  // The time that channels of the server had nothing to do, all together.
  Duration idle = {};
  std::int64_t at_server = 0;
  TimePoint changed = simulation.now();
  const auto change = [&](int by) {
    const std::int64_t unused = std::max<std::int64_t>(of.parallelism - at_server, 0);
    idle += (simulation.now() - changed) * unused;
    changed = simulation.now();
    at_server += by;
  };
  simulation.on_sent = [&](const IoRequest&) { change(1); };
  simulation.on_done = [&](const IoRequest&, Cost) { change(-1); };
  simulation.run_requests(count);
  const Cost before[] = {simulation.done(0), simulation.done(1)};
  const TimePoint begin = simulation.now();
  const Duration idle_before = idle;
  simulation.run_requests(2 * count);
  const double time = in_seconds(simulation.now() - begin);
  return {.a = static_cast<double>(simulation.done(0) - before[0]) / time,
          .b = static_cast<double>(simulation.done(1) - before[1]) / time,
          .idle = in_seconds(idle - idle_before) / of.parallelism / time};
}

// Alone, `a` gets at most its requests in flight for each think and service time. It is entitled to
// its weight's part of what the server does for fifo. `b` gets the rest.
AnticipationRow AnticipationStudy::run(const AnticipationCase& of) const {
  const Totals fifo = measure("fifo", false, requests / 4, of);
  const Totals off = measure("sfq", false, requests / 4, of);
  const Totals on = measure("sfq", true, requests, of);
  const double capacity = fifo.a + fifo.b;
  const auto size = static_cast<double>(of.size);
  const double service =
      in_seconds(per_request) + size * of.parallelism / static_cast<double>(speed);
  const double late = late_one_in > 0 ? 1.0 / late_one_in : 0;
  const double think = in_seconds(of.think) * (1 + late * (FlowWork::kLateTimes - 1));
  const double alone =
      size * std::min(of.in_flight_a / (think + service), of.parallelism / service);
  const double entitled = capacity * of.weight / (of.weight + 1.0);
  const double feasible = std::min(alone, entitled);
  return {.of = of,
          .ratio_off = off.a / off.b,
          .ratio_on = on.a / on.b,
          .feasible_ratio = feasible / (capacity - feasible),
          .total_vs_fifo = (on.a + on.b) / capacity,
          .idle_percent = on.idle * 100};
}

std::vector<AnticipationCase> all_anticipation_cases() {
  std::vector<AnticipationCase> cases = {{}};
  // Every case so far, once for each value.
  const auto multiply = [&](const auto& values, auto set) {
    std::vector<AnticipationCase> more;
    for (const AnticipationCase& each : cases) {
      for (const auto value : values) set(more.emplace_back(each), value);
    }
    cases = std::move(more);
  };
  using Case = AnticipationCase;
  using Numbers = std::vector<std::uint32_t>;
  multiply(Numbers{1, 4, 16}, [](Case& to, std::uint32_t value) { to.parallelism = value; });
  multiply(Numbers{4, 64, 1024, 4096}, [](Case& to, std::uint32_t kib) { to.size = kib * kKiB; });
  multiply(Numbers{50, 200, 1000, 5000},
           [](Case& to, std::uint32_t us) { to.think = std::chrono::microseconds(us); });
  multiply(Numbers{1, 2, 8}, [](Case& to, std::uint32_t value) { to.weight = value; });
  multiply(Numbers{1, 2, 4}, [](Case& to, std::uint32_t value) { to.in_flight_a = value; });
  multiply(Numbers{16, 64}, [](Case& to, std::uint32_t value) { to.in_flight_b = value; });
  return cases;
}

}  // namespace vpfs
