#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "proxy/settings.h"
#include "proxy/shared_state.h"
#include "proxy/status_snapshot.h"

namespace vpfs::proxy {

// SIGHUPs so far.
struct Reloads {
  std::uint64_t tried = 0;
  std::uint64_t failed = 0;
  std::string last_error;  // "" when the last one went well
};

// The proxy's state as JSON text; docs/admin/numbers.md explains the fields.
[[nodiscard]] std::string status_text(const Settings& settings, const Reloads& reloads,
                                      SharedState& shared, const StatusSnapshot& snapshot);

// Replaces the file at once: a reader sees the old text or the new, never half of one.
[[nodiscard]] Result<void> write_status_file(const std::string& path, const std::string& text);

}  // namespace vpfs::proxy
