#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/wire/port_address.h"
#include "net/async.h"

namespace vpfs::control {

// The addresses of one host, looked up on a thread of its own: a name service may hang, and whoever
// waits for it can end before. Belongs to the strand of its context.
class HostLookup {
 public:
  using Found = std::expected<std::vector<net::Endpoint>, std::string>;

  // REQUIRES: the address is not a UNIX socket's. An address of numbers is known at once.
  HostLookup(asio::io_context& context, const PortAddress& address);
  ~HostLookup();
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;

  [[nodiscard]] const PortAddress& address() const { return address_; }
  // Its end, or an error after `patience`. One coroutine at a time; may be called again.
  [[nodiscard]] net::Task<Found> wait(Duration patience);
  [[nodiscard]] bool is_done() const;

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared, const PortAddress& address);

  const PortAddress address_;
  asio::steady_timer timer_;              // the caller waits on it
  const std::shared_ptr<Shared> shared_;  // with the thread
};

// Those of several hosts. One that hangs is waited for again, so that there are never many. Belongs
// to the strand of its context.
class HostLookups {
 public:
  explicit HostLookups(asio::io_context& context) : context_(context) {}

  // REQUIRES: the address is not a UNIX socket's. An error after `patience`. One coroutine at a
  // time.
  [[nodiscard]] net::Task<HostLookup::Found> find(PortAddress address, Duration patience);

 private:
  asio::io_context& context_;
  std::vector<std::unique_ptr<HostLookup>> under_way_;
};

}  // namespace vpfs::control
