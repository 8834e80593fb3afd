#pragma once

#include "base/result.h"
#include "net/async.h"
#include "net/descriptor.h"

namespace vpfs::coordinator {

// Keeps a TCP port from other processes while none listens there. Sockets of the same user may
// listen on it (SO_REUSEPORT), those of others may not.
class PortReservation {
 public:
  // Port 0: the kernel chooses. The error names the endpoint.
  [[nodiscard]] static Result<PortReservation> make(const net::Endpoint& endpoint);

  [[nodiscard]] const net::Endpoint& endpoint() const { return endpoint_; }

 private:
  PortReservation() = default;

  net::Descriptor bound_;  // it never listens
  net::Endpoint endpoint_;
};

// A socket that listens on a port that this process has reserved. The error names the endpoint.
[[nodiscard]] Result<net::Descriptor> listen_on_reserved(const net::Endpoint& endpoint);

}  // namespace vpfs::coordinator
