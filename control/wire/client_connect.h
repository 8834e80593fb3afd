#pragma once

#include <expected>
#include <memory>
#include <string>

#include "control/wire/client_session.h"

namespace vpfs::control {

// A connected socket. The error is a sentence: no such socket, no permission (and whose group to
// join), nobody listens, ... Ports on TCP speak TLS on it.
[[nodiscard]] net::Task<std::expected<net::StreamSocket, std::string>> connect_socket(
    PortAddress address, Duration patience);

// A connected channel, before the TLS handshake. The error is as above.
[[nodiscard]] net::Task<std::expected<std::shared_ptr<net::Channel>, std::string>> connect_port(
    PortAddress address, ClientOptions options);

}  // namespace vpfs::control
