#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/scheduler.h"

namespace vpfs {

struct SchedulerSettings {
  Depth depth;
};

// The policies by the names that configurations use: "fifo", "sfq".
[[nodiscard]] std::vector<std::string_view> scheduler_names();
// An unknown name is an error that lists the known ones.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                                const SchedulerSettings& settings);

}  // namespace vpfs
