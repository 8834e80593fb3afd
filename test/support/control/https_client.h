#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "net/endpoint.h"

namespace vpfs::test {

// Sends the request to a port of this host, with the certificate of that name in the folder (see
// certificates.h). Returns what comes back up to the end; nothing: TLS failed.
[[nodiscard]] std::optional<std::string> ask_https(const net::Endpoint& port,
                                                   const std::filesystem::path& certificates,
                                                   const std::string& name,
                                                   const std::string& request);

}  // namespace vpfs::test
