#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "control/wire/port_config.h"
#include "net/tls.h"

namespace vpfs::test {

// Makes certificates with script/certificates and these arguments in `folder`.
void make_certificates(const std::filesystem::path& folder, std::vector<std::string> arguments);

// The files of one certificate there.
[[nodiscard]] net::TlsFiles certificate_files(const std::filesystem::path& folder,
                                              const std::string& name);
// A client's context with them; fails the program if they are invalid.
[[nodiscard]] std::shared_ptr<net::TlsContext> client_tls(const std::filesystem::path& folder,
                                                          const std::string& name);

}  // namespace vpfs::test
