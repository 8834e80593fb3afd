#pragma once

#include <cstddef>
#include <optional>

#include <sys/socket.h>
#include <sys/types.h>

#include "net/splice_pipe.h"
#include "proxy/pump/unread.h"

namespace vpfs::proxy {

// The system calls that move a pump's bytes. Each returns what the call of its name returns: -1
// with errno on an error, 0 at the end of a stream. A test overrides them to make one fail.
class SocketCalls {
 public:
  virtual ~SocketCalls() = default;

  // `unread`: as that of receive().
  [[nodiscard]] virtual ssize_t recv(int socket, void* to, std::size_t size, int flags,
                                     std::optional<std::size_t>& unread) {
    return receive(socket, to, size, flags, unread);
  }
  [[nodiscard]] virtual ssize_t send(int socket, const void* from, std::size_t size, int flags) {
    return ::send(socket, from, size, flags);
  }
  [[nodiscard]] virtual ssize_t sendmsg(int socket, const msghdr& message, int flags) {
    return ::sendmsg(socket, &message, flags);
  }
  // splice(2) into the pipe and out of it.
  [[nodiscard]] virtual ssize_t fill(net::SplicePipe& pipe, int socket, std::size_t size) {
    return pipe.fill_from(socket, size);
  }
  [[nodiscard]] virtual ssize_t drain(net::SplicePipe& pipe, int socket) {
    return pipe.drain_to(socket);
  }
};

}  // namespace vpfs::proxy
