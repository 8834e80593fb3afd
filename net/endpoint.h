#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/async.h"

namespace vpfs::net {

// The parts of "HOST:PORT", an IPv6 address without its brackets; `host` borrows from the text.
struct HostPort {
  std::string_view host;
  std::uint16_t port = 0;
};
// Looks at the form only. The error names the text.
[[nodiscard]] Result<HostPort> split_address(std::string_view text);

// "127.0.0.1:3334", "[::1]:3334", "host:3334", "0.0.0.0:0". Names are looked up at once (blocking):
// only for start-up. The error names the text.
[[nodiscard]] Result<Endpoint> resolve_endpoint(std::string_view text);

// Turns an IPv4 address mapped into IPv6 ("::ffff:10.0.0.1") back into IPv4; others stay unchanged.
[[nodiscard]] Endpoint unmapped(const Endpoint& endpoint);

// Whether packets to the address stay on this host: it is the address of an interface, a loopback
// address, or the unspecified one.
[[nodiscard]] bool is_own_address(const asio::ip::address& address);

[[nodiscard]] std::string to_string(const Endpoint& endpoint);

// Connects with TCP_NODELAY set, or gives up after `patience`.
[[nodiscard]] Task<Result<Socket>> connect(Endpoint endpoint, Duration patience);

}  // namespace vpfs::net
