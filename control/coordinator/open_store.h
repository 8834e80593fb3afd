#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "control/coordinator/config/config.h"
#include "control/store/site_store.h"

namespace vpfs::coordinator {

// The store of a configuration. One that several coordinators share may be opened several times by
// a process. `clock` outlives it. The error names the key of the configuration.
[[nodiscard]] Result<std::unique_ptr<control::SiteStore>> open_store(const Config& config,
                                                                     const Clock& clock);

}  // namespace vpfs::coordinator
