#pragma once

#include <cstdint>
#include <system_error>

#include "base/clock.h"
#include "base/result.h"
#include "net/endpoint.h"

namespace vpfs::net {

// TCP_NODELAY and non-blocking mode on a connected socket.
[[nodiscard]] std::error_code prepare_stream(int socket);

// Makes the kernel probe a peer that has been silent for a minute; without an answer the connection
// ends within two more. Connections of a vanished host would otherwise stay forever.
void keep_alive(int socket);

// Ends the connection when the peer's kernel has acknowledged nothing of what was sent for so long
// (TCP_USER_TIMEOUT, counted from the first time that it is sent again). What was sent is not
// delivered later then, also after this program has closed the socket, or was killed or stopped. A
// UNIX socket loses nothing, and is left alone.
void bound_delivery(int socket, Duration within);

// The socket takes more to send only while less than so many bytes wait for the peer's window. So a
// write that gets on shows that the peer takes what it is sent, however large the buffer is.
void bound_unsent(int socket, std::uint32_t bytes);

// Whether the peer has stopped sending; some of its data may still be unread.
[[nodiscard]] bool has_hung_up(int socket);

// The address that the peer connected to before a packet filter redirected it here; an error when
// none did.
[[nodiscard]] Result<Endpoint> original_destination(int socket);

// Makes a write to a closed connection fail with EPIPE instead of ending the process; splice(2) and
// sendfile(2) have no flag for that. Call once, from main.
void ignore_broken_pipes();

// Raises the soft limit of open files to the hard one; returns the limit in force.
[[nodiscard]] unsigned long raise_open_file_limit();

}  // namespace vpfs::net
