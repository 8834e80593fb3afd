#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "net/async.h"
#include "net/endpoint.h"
#include "protocols/orangefs/message.h"

namespace vpfs::dataserver {

// A client of the file system's other servers, for requests about datafiles on several of them.
// Connects on first use and again after a loss. Belongs to one strand.
class Peers {
 public:
  // `endpoints` has all servers in the order of the configuration, ours included (never called).
  Peers(asio::io_context& context, std::vector<net::Endpoint> endpoints, Duration patience);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  using Reply = std::expected<orangefs::Response, orangefs::Status>;

  // Sends a request and waits for its response, at most for `patience`. The error is the response's
  // status, or ETIMEDOUT, ECONNREFUSED or ECONNRESET without a response.
  [[nodiscard]] net::Task<Reply> call(std::uint32_t server, orangefs::Request request);
  void close();

 private:
  class ServerLink;
  asio::io_context& context_;
  std::vector<net::Endpoint> endpoints_;
  Duration patience_;
  std::vector<std::shared_ptr<ServerLink>> links_;  // shared with the coroutine that reads
  bool closed_ = false;
};

}  // namespace vpfs::dataserver
