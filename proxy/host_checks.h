#pragma once

#include <optional>

#include "base/config_reader.h"
#include "proxy/config.h"

namespace vpfs::proxy {

// What a configuration wants of the host that it is for: that the status file can be written, that
// the kernel knows the congestion control, that the proxy does not connect to itself. Looks up
// names (blocking), but not with `running`, whose addresses cannot change.
void check_host(const Config& config, ConfigErrors& errors, const Config* running = nullptr);

// The configuration file that `errors` is about, parsed and checked against the host.
[[nodiscard]] std::optional<Config> load_config_file(ConfigErrors& errors,
                                                     const Config* running = nullptr);

}  // namespace vpfs::proxy
