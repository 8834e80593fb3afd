#include "control/coordinator/members/port_reservation.h"

#include <system_error>

#include <fmt/format.h>

#include "net/endpoint.h"

namespace vpfs::coordinator {

Result<PortReservation> PortReservation::make(const net::Endpoint& endpoint) {
  PortReservation made;
  made.context_ = std::make_unique<asio::io_context>();
  made.bound_ = std::make_unique<asio::ip::tcp::acceptor>(*made.context_);
  asio::ip::tcp::acceptor& socket = *made.bound_;
  const auto problem = [&](const std::error_code& error) {
    return fail(fmt::format("cannot listen on {}: {}", net::to_string(endpoint), error.message()),
                error);
  };
  std::error_code error;
  socket.open(endpoint.protocol(), error);
  if (error) return problem(error);
  // Another socket with this option may use the port, as long as this one does not listen.
  socket.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
  if (error) return problem(error);
  if (endpoint.address().is_v6()) {
    socket.set_option(asio::ip::v6_only(false), error);
    if (error) return problem(error);
  }
  socket.bind(endpoint, error);
  if (error) return problem(error);
  made.endpoint_ = socket.local_endpoint(error);
  if (error) return problem(error);
  return made;
}

}  // namespace vpfs::coordinator
