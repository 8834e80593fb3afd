#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "control/wire/client_session.h"
#include "net/async.h"

namespace vpfs::control {

// A connected socket. The error is a sentence: no such socket, no permission (and whose group to
// join), no process listens, ... Ports on TCP speak TLS on it. Without `endpoints` the host is
// looked up.
using ConnectedSocket = std::expected<net::StreamSocket, std::string>;
[[nodiscard]] net::Task<ConnectedSocket> connect_socket(PortAddress address, ClientOptions options,
                                                        std::vector<net::Endpoint> endpoints = {});

// A connected channel, before the TLS handshake. The error is as above.
using Connected = std::expected<std::shared_ptr<net::Channel>, std::string>;
[[nodiscard]] net::Task<Connected> connect_port(PortAddress address, ClientOptions options,
                                                std::vector<net::Endpoint> endpoints = {});
// The same with the addresses of a host that are known. Its name must be in its certificate.
[[nodiscard]] net::Task<Connected> connect_host(std::string host,
                                                std::vector<net::Endpoint> endpoints,
                                                ClientOptions options);

}  // namespace vpfs::control
