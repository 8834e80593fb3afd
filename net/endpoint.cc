#include "net/endpoint.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include <asio/experimental/awaitable_operators.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "base/result.h"
#include "net/connecting.h"

namespace vpfs::net {

Result<HostPort> split_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return fail(fmt::format("'{}' is not an endpoint: expected HOST:PORT", text));
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);

  std::uint16_t port = 0;
  const auto [end, problem] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (problem != std::errc{} || end != port_text.data() + port_text.size()) {
    return fail(fmt::format("'{}': port must be a number from 0 to 65535", text));
  }

  return HostPort{.host = host, .port = port};
}

Result<Endpoint> resolve_endpoint(std::string_view text) {
  const Result<HostPort> parts = split_address(text);
  VPFS_TRY(parts);
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(parts->host, error);
  if (!error) return Endpoint(address, parts->port);

  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  const auto found = resolver.resolve(parts->host, std::to_string(parts->port), error);
  if (error || found.empty()) {
    return fail(fmt::format("'{}': host not found: {}", text, error.message()), error);
  }
  return found.begin()->endpoint();
}

Endpoint unmapped(const Endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return endpoint;
  return {asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()), endpoint.port()};
}

bool is_own_address(const asio::ip::address& address) {
  const asio::ip::address wanted = unmapped(Endpoint(address, 0)).address();
  if (wanted.is_loopback() || wanted.is_unspecified()) return true;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Endpoint own;
    own.resize(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    std::memcpy(own.data(), each->ifa_addr, own.size());
    // An interface's own scope is not part of how an address is written.
    const bool same = own.address().is_v6() && wanted.is_v6()
                          ? own.address().to_v6().to_bytes() == wanted.to_v6().to_bytes()
                          : own.address() == wanted;
    if (same) return true;
  }
  return false;
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.address().is_v6()) {
    return fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port());
  }
  return fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

Task<Result<Socket>> connect(Endpoint endpoint, Duration patience) {
  using asio::experimental::awaitable_operators::operator||;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  Socket socket(executor);
  asio::steady_timer timer(executor, patience);
  const auto outcome =
      co_await (socket.async_connect(endpoint, kUseTask) || timer.async_wait(kUseTask));
  if (outcome.index() == 1) co_return std::unexpected(connect_timed_out(endpoint));
  const std::error_code error = std::get<0>(std::get<0>(outcome));
  if (error) co_return std::unexpected(connect_failed(endpoint, error));
  std::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::out_of_band_inline(true), ignored);
  co_return socket;
}

}  // namespace vpfs::net
