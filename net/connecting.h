#pragma once

#include <system_error>

#include "base/result.h"
#include "net/descriptor.h"
#include "net/endpoint.h"

namespace vpfs::net {

// Begins to connect a non-blocking socket with the options of prepare_stream(). It becomes writable
// when it is connected, or has failed. The error names the endpoint.
[[nodiscard]] Result<Descriptor> begin_connect(const Endpoint& to);
// How it went. REQUIRES: the socket was writable.
[[nodiscard]] Result<void> connect_outcome(int socket, const Endpoint& to);
// What to say of a connection that has failed, or had no answer in time.
[[nodiscard]] Error connect_failed(const Endpoint& to, std::error_code code);
[[nodiscard]] Error connect_timed_out(const Endpoint& to);

// The addresses of a connected socket.
[[nodiscard]] Result<Endpoint> local_endpoint(int socket);
[[nodiscard]] Result<Endpoint> remote_endpoint(int socket);

}  // namespace vpfs::net
