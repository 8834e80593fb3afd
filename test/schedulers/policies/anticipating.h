#pragma once

#include <cstdint>
#include <memory>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"

namespace vpfs {

inline constexpr std::uint32_t kMaxLoss = 100;  // thousandths

inline std::unique_ptr<Scheduler> anticipating(std::uint32_t depth,
                                               std::uint32_t max_loss = kMaxLoss, bool on = true) {
  SchedulerSettings settings = {.depth = {.requests = depth}};
  settings.own.set(AnticipationSettings{.on = on, .max_loss = max_loss});
  return make_scheduler("sfq", settings).value();
}

}  // namespace vpfs
