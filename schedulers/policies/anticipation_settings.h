#pragma once

#include <cstdint>
#include <string>

#include "schedulers/policy_kind.h"

namespace vpfs {

struct AnticipationSettings {
  // The upper limit of `max_loss`, in thousandths.
  static constexpr std::uint32_t kMostLoss = 500;

  bool on = false;
  // What the total may fall by while slots are kept, in thousandths; 0: none is kept.
  std::uint32_t max_loss = 100;

  bool operator==(const AnticipationSettings&) const = default;
};

// Reads `sfq.anticipation` of the mapping `scheduler`: off, on, or a mapping with its settings.
void read_anticipation(ConfigReader& scheduler, SchedulerSettings& settings, bool is_chosen);
// Describes it in a line for people; "": it is off.
[[nodiscard]] std::string summary_of_anticipation(const SchedulerSettings& settings);

}  // namespace vpfs
