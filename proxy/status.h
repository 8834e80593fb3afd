#pragma once

#include <string>

#include "base/result.h"
#include "proxy/dispatcher.h"
#include "proxy/shared_state.h"

namespace vpfs::proxy {

// The proxy's state as JSON text; docs/admin.md explains the fields.
[[nodiscard]] std::string status_text(SharedState& shared, Dispatcher& dispatcher);

// Replaces the file at once: a reader sees the old text or the new, never half of one.
[[nodiscard]] Result<void> write_status_file(const std::string& path, const std::string& text);

}  // namespace vpfs::proxy
