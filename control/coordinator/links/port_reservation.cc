#include "control/coordinator/links/port_reservation.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/connecting.h"
#include "net/endpoint.h"

namespace vpfs::coordinator {
namespace {

constexpr int kBacklog = 4096;

std::unexpected<Error> problem_at(const net::Endpoint& endpoint) {
  const std::error_code error(errno, std::system_category());
  return fail(fmt::format("cannot listen on {}: {}", net::to_string(endpoint), error.message()),
              error);
}

Result<net::Descriptor> bind_at(const net::Endpoint& endpoint) {
  const int family = endpoint.address().is_v6() ? AF_INET6 : AF_INET;
  net::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return problem_at(endpoint);
  const int on = 1;
  const int off = 0;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return problem_at(endpoint);
  }
  // [::] also serves IPv4.
  if (family == AF_INET6) {
    (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
    return problem_at(endpoint);
  }
  return socket;
}

}  // namespace

Result<PortReservation> PortReservation::make(const net::Endpoint& endpoint) {
  auto bound = bind_at(endpoint);
  VPFS_TRY(bound);
  auto at = net::local_endpoint(bound->get());
  VPFS_TRY(at);
  PortReservation made;
  made.bound_ = std::move(*bound);
  made.endpoint_ = endpoint;
  made.endpoint_.port(at->port());
  return made;
}

Result<net::Descriptor> listen_on_reserved(const net::Endpoint& endpoint) {
  auto bound = bind_at(endpoint);
  VPFS_TRY(bound);
  if (::listen(bound->get(), kBacklog) != 0) return problem_at(endpoint);
  return std::move(*bound);
}

}  // namespace vpfs::coordinator
