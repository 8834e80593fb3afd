#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/clock.h"
#include "control/admin/stage_snapshot.h"
#include "control/wire/dialled_coordinator.h"
#include "stage/config/config.h"

namespace vpfs::control {

// How many reloads there were.
struct Reloads {
  std::uint64_t tried = 0;
  std::uint64_t failed = 0;
  std::string last_error;  // "" if the last one succeeded
};

// What a Host tells the program that writes a status.
struct HostStatus {
  Reloads reloads;
  StageSnapshot snapshot;
  std::optional<DialledCoordinator> coordinator;
  std::optional<WallTime> certificate_end = {};  // of its ports
};

// The fields of a status that every program with a stage has; docs/admin/numbers.md explains them.
void add_reloads(nlohmann::ordered_json& status, const Reloads& reloads);
void add_stage(nlohmann::ordered_json& status, const stage::Config& config,
               const StageSnapshot& snapshot);
// Nothing while no coordinator is configured or has sent a cycle, and without a certificate.
void add_coordinator(nlohmann::ordered_json& status, const HostStatus& host);

// The text of a status. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_text(const nlohmann::ordered_json& status);

}  // namespace vpfs::control
