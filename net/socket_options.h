#pragma once

#include <optional>
#include <string>
#include <system_error>

#include "base/result.h"
#include "net/endpoint.h"

namespace vpfs::net {

// TCP_NODELAY and non-blocking mode on a connected socket.
[[nodiscard]] std::error_code prepare_stream(int socket);

// Chooses the congestion control of one socket ("cubic", "reno"). The system's default may pace
// (bbr), which costs half the throughput on a local connection.
[[nodiscard]] std::error_code set_congestion_control(int socket, const std::string& name);

// Why this kernel does not let this program use it; nothing when it does. The names that it offers
// stand in the message.
[[nodiscard]] std::optional<std::string> congestion_control_problem(const std::string& name);

// Has the kernel ask a silent peer whether it is still there: after a minute, and two minutes later
// at most the connection ends. A host that vanished would keep its connections for ever.
void keep_alive(int socket);

// Whether the peer will send nothing more, though what it has sent may not be read yet.
[[nodiscard]] bool has_hung_up(int socket);

// Where the peer meant to connect to before a packet filter redirected it here; an error when it
// did not.
[[nodiscard]] Result<Endpoint> original_destination(int socket);

// Writing to a connection that its peer has closed then fails with EPIPE instead of ending the
// process: splice(2) and sendfile(2) have no flag for that. Call once, from main.
void ignore_broken_pipes();

// Raises the soft limit of open files to the hard one; returns the limit in force.
[[nodiscard]] unsigned long raise_open_file_limit();

}  // namespace vpfs::net
