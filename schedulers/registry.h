#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/adaptbf.h"
#include "schedulers/scheduler.h"

namespace vpfs {

struct SchedulerSettings {
  Depth depth = {};
  std::optional<AutoDepth> auto_depth = {};
  TrafficClasses classes = {};

  // For `edf`: what promises are made of. The largest request is taken into account in them: one
  // that is larger may make the server late.
  std::uint64_t capacity = 0;  // cost/s; zero: unknown
  Cost largest_request = 4 * kMiB;
  Duration default_latency = std::chrono::seconds(1);  // of flows without a target

  AdapTbfSettings adaptbf = {};

  bool operator==(const SchedulerSettings&) const = default;
};

// What a policy makes of a Share; every policy accepts a weight.
enum class ShareField : std::uint8_t {
  rate,        // and burst
  operations,  // and burst_operations
  min,
  realtime,
  rank,
  latency,
  finish,
  nodes,
};

// The policies by the names that configurations use: "fifo", "sfq", ...
[[nodiscard]] std::vector<std::string_view> scheduler_names();
// Whether a policy does something with a field; false for unknown policies.
[[nodiscard]] bool policy_knows(std::string_view name, ShareField field);
// An unknown name is an error that lists the known ones.
// `shared`: see Scheduler; the policies that know no rate, and those that make rates of their own
// or promise something of the server's capacity (`adaptbf`, `edf`), do not look at it.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                                const SchedulerSettings& settings,
                                                                RateLimits* shared = nullptr);

}  // namespace vpfs
