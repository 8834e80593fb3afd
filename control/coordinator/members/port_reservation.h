#pragma once

#include <memory>

#include <asio/io_context.hpp>

#include "base/result.h"
#include "net/async.h"

namespace vpfs::coordinator {

// Keeps a TCP port from other processes while none listens there. A net::Listener of this process
// can be opened on it, and opened again.
class PortReservation {
 public:
  // Port 0: the kernel chooses. The error names the endpoint.
  [[nodiscard]] static Result<PortReservation> make(const net::Endpoint& endpoint);

  [[nodiscard]] const net::Endpoint& endpoint() const { return endpoint_; }

 private:
  PortReservation() = default;

  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<asio::ip::tcp::acceptor> bound_;  // it never listens
  net::Endpoint endpoint_;
};

}  // namespace vpfs::coordinator
