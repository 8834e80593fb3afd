#pragma once

#include <optional>

#include "base/config_reader.h"
#include "proxy/config/config.h"

namespace vpfs::proxy {

// Checks what a configuration needs of its host: the status file is writable, the kernel has the
// congestion control, there is a processor for each worker, and the proxy does not connect to
// itself. Resolves addresses, which blocks; with `running` it resolves none, because they cannot
// change. `names` has the users and groups; null: those of this host.
void check_host(const Config& config, ConfigErrors& errors, const Config* running = nullptr,
                const stage::Names* names = nullptr);

// A warning if there are more workers than processors; a part of check_host().
void check_workers(const Config& config, std::size_t processors, ConfigErrors& errors);

// The configuration file that `errors` is about, parsed and checked against the host.
[[nodiscard]] std::optional<Config> load_config_file(ConfigErrors& errors,
                                                     const Config* running = nullptr,
                                                     const stage::Names* names = nullptr,
                                                     stage::PolicyLoader* plugins = nullptr);

}  // namespace vpfs::proxy
