#pragma once

#include <string>

#include "control/host/status.h"
#include "proxy/shared_state.h"
#include "proxy/worker_settings.h"

namespace vpfs::proxy {

// The proxy's state as JSON text; docs/admin/numbers.md explains the fields.
[[nodiscard]] std::string status_text(const WorkerSettings& settings, SharedState& shared,
                                      const control::HostStatus& host);

}  // namespace vpfs::proxy
