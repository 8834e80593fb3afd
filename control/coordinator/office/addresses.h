#pragma once

#include <string>
#include <vector>

#include "control/coordinator/config/config.h"

namespace vpfs::coordinator {

// Where others find the administrators' port of this coordinator, as vpfsctl takes addresses: those
// of `store.addresses`, else that of `control.tcp` (with this host's name where it listens on all
// addresses), else its socket. Empty: it has no such port.
[[nodiscard]] std::vector<std::string> addresses_of(const Config& config);

// The host as others reach it: this host's name where it means all addresses.
[[nodiscard]] std::string reachable_host(const std::string& host);
// A UNIX socket's address: "unix:/run/vpfs/x.sock".
[[nodiscard]] std::string absolute_address(const std::string& socket);

}  // namespace vpfs::coordinator
