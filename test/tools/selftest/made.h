#pragma once

#include <chrono>
#include <cmath>
#include <vector>

#include "tools/selftest/plan.h"
#include "tools/selftest/run.h"

namespace vpfs::selftest {

// What a self-test would have seen of a server that follows the cost model: `parallel` requests at
// a time, each of which takes `request` and its bytes, with a proxy whose shares are `skew` off.
struct MadeServer {
  double request = 1e-3;  // seconds
  double byte = 1e-9;
  double write_factor = 1;
  double parallel = 4;
  double proxy_delay = 50e-6;
  double skew = 1;
  double limit_skew = 1;

  [[nodiscard]] Measurement measure(const Phase& phase) const {
    Measurement measurement;
    measurement.phase = phase;
    measurement.length = phase.length - phase.warm_up();
    const double bytes = byte * (phase.reads ? 1 : write_factor);
    double time = request + bytes * static_cast<double>(phase.size.count);
    if (phase.path == Path::proxy) time += proxy_delay;
    double busy = std::min(static_cast<double>(phase.in_flight * phase.applications()), parallel);
    if (phase.purpose == Purpose::limit) {
      measurement.limit = {static_cast<std::uint64_t>(
          std::round(busy / time * static_cast<double>(phase.size.count) / 2))};
      busy *= limit_skew / 2;
    }
    const double all = busy / time * in_seconds(measurement.length);
    const auto latency = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time));
    const auto add = [&](double part) {
      const auto requests = static_cast<std::uint64_t>(all * part);
      measurement.applications.push_back({.bytes = requests * phase.size.count,
                                          .requests = requests,
                                          .median = latency,
                                          .p99 = latency * 2});
    };
    if (phase.weights.empty()) {
      add(1);
    } else {
      const double ratio = skew * phase.weights[0] / phase.weights[1];
      add(ratio / (1 + ratio));
      add(1 / (1 + ratio));
    }
    return measurement;
  }

  [[nodiscard]] Record record(const PlanInput& input) const {
    Record record;
    record.proxy = {.name = "stor0", .policy = "sfq", .depth_requests = input.proxy_depth};
    for (const Phase& each : plan(input)) {
      if (each.purpose != Purpose::check) record.measurements.push_back(measure(each));
    }
    return record;
  }
};

[[nodiscard]] inline PlanInput made_input() {
  return {.time = std::chrono::minutes(3), .direct = true, .proxy_depth = 8};
}

}  // namespace vpfs::selftest
