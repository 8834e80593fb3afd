#include "net/connecting.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <sys/socket.h>

#include "net/socket_options.h"

namespace vpfs::net {
namespace {

Error connect_error(const Endpoint& to, int number) {
  return connect_failed(to, {number, std::system_category()});
}

using NameCall = int (*)(int, sockaddr*, socklen_t*);

Result<Endpoint> endpoint_of(int socket, NameCall call) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (call(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const std::error_code code(errno, std::system_category());
    return fail("the address of a socket: " + code.message(), code);
  }
  Endpoint endpoint;
  endpoint.resize(size);
  std::memcpy(endpoint.data(), &address, endpoint.size());
  return endpoint;
}

}  // namespace

Result<Descriptor> begin_connect(const Endpoint& to) {
  Descriptor socket(
      ::socket(to.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (socket.get() < 0) return std::unexpected(connect_error(to, errno));
  if (const std::error_code problem = prepare_stream(socket.get())) {
    return std::unexpected(connect_error(to, problem.value()));
  }
  const int done = ::connect(socket.get(), to.data(), static_cast<socklen_t>(to.size()));
  if (done != 0 && errno != EINPROGRESS && errno != EINTR) {
    return std::unexpected(connect_error(to, errno));
  }
  return socket;
}

Result<void> connect_outcome(int socket, const Endpoint& to) {
  int number = 0;
  socklen_t size = sizeof number;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &size) != 0) number = errno;
  if (number != 0) return std::unexpected(connect_error(to, number));
  return {};
}

Error connect_failed(const Endpoint& to, std::error_code code) {
  return {fmt::format("connect to {}: {}", to_string(to), code.message()), code};
}

Error connect_timed_out(const Endpoint& to) {
  return {fmt::format("connect to {}: no answer", to_string(to)),
          std::make_error_code(std::errc::timed_out)};
}

Result<Endpoint> local_endpoint(int socket) {
  return endpoint_of(socket, ::getsockname);
}

Result<Endpoint> remote_endpoint(int socket) {
  return endpoint_of(socket, ::getpeername);
}

}  // namespace vpfs::net
