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

// The other servers of the file system, as their client: for requests about datafiles that lie on
// several servers. Connects when first needed and again after a loss; belongs to one strand.
class Peers {
 public:
  // `endpoints`: of all servers in the order of the configuration, ours too (never called).
  Peers(asio::io_context& context, std::vector<net::Endpoint> endpoints, Duration patience);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  using Reply = std::expected<orangefs::Response, orangefs::Status>;

  // Sends a request and waits for its response, at most the patience given. The status of a
  // response that says no is the error; without an answer it is ETIMEDOUT, ECONNREFUSED or
  // ECONNRESET.
  [[nodiscard]] net::Task<Reply> call(std::uint32_t server, orangefs::Request request);
  void close();

 private:
  class Link;
  asio::io_context& context_;
  std::vector<net::Endpoint> endpoints_;
  Duration patience_;
  std::vector<std::shared_ptr<Link>> links_;  // shared with the coroutine that reads
  bool closed_ = false;
};

}  // namespace vpfs::dataserver
