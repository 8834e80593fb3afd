#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "control/admin/stage_snapshot.h"
#include "control/wire/dialled_coordinator.h"
#include "proxy/settings.h"
#include "proxy/shared_state.h"

namespace vpfs::proxy {

// How many reloads there were.
struct Reloads {
  std::uint64_t tried = 0;
  std::uint64_t failed = 0;
  std::string last_error;  // "" if the last one succeeded
};

// The proxy's state as JSON text; docs/admin/numbers.md explains the fields.
[[nodiscard]] std::string status_text(
    const Settings& settings, const Reloads& reloads, SharedState& shared,
    const control::StageSnapshot& snapshot,
    const std::optional<control::DialledCoordinator>& coordinator);

// Replaces the file atomically: a reader sees either the old text or the new one.
[[nodiscard]] Result<void> write_status_file(const std::string& path, const std::string& text);

}  // namespace vpfs::proxy
