#pragma once

#include <optional>
#include <system_error>

#include "client/orangefs/calls/exchange.h"
#include "client/orangefs/calls/server_connection.h"
#include "net/latch.h"
#include "protocols/orangefs/message.h"

namespace vpfs::client {

// A request with one response: all operations but IO and SMALL_IO.
class Call final : public Exchange {
 public:
  // `latch` counts the end of this call; both outlive it.
  Call(ServerConnection& connection, net::Latch& latch) : connection_(connection), latch_(latch) {}

  // A request that is larger than servers take (docs/wire-orangefs.md section 1) ends at once with
  // message_size. They would close the connection, and with it the exchanges of all users.
  void begin(const orangefs::Request& request, Duration patience);

  // After the latch: the response (of any status), or why there is none.
  [[nodiscard]] std::optional<orangefs::Response>& response() { return response_; }
  [[nodiscard]] std::error_code failure() const { return failure_; }

 private:
  [[nodiscard]] bool on_response(std::span<const std::byte> payload) override;
  void on_failure(std::error_code error) override;

  ServerConnection& connection_;
  net::Latch& latch_;
  orangefs::Op op_ = orangefs::Op::invalid;
  std::optional<orangefs::Response> response_;
  std::error_code failure_;
};

}  // namespace vpfs::client
