#include "control/wire/client_connect.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <asio/execution/context.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/result.h"
#include "control/wire/accounts.h"
#include "control/wire/host_lookup.h"
#include "net/endpoint.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

std::string no_permission(const std::string& path, const ClientOptions& options) {
  struct stat socket = {};
  if (::stat(path.c_str(), &socket) != 0) {
    return "permission denied: this user may not enter a folder of that path";
  }
  const auto user = options.names_users ? user_name(socket.st_uid) : std::nullopt;
  const std::string owner = user.value_or(fmt::format("uid {}", socket.st_uid));
  if ((socket.st_mode & S_IWGRP) == 0) {
    return fmt::format("permission denied: only {} may connect", owner);
  }
  // To be in root's group would give far more than this.
  if (socket.st_gid == 0) {
    return fmt::format(
        "permission denied: only {} may connect, unless the {}'s control.group names another group "
        "than root",
        owner, options.peer);
  }
  const auto name = options.names_users ? group_name(socket.st_gid) : std::nullopt;
  const std::string group = name.value_or(std::to_string(socket.st_gid));
  return fmt::format("permission denied: join the group {}, or be {}", group, owner);
}

std::string unix_problem(const std::string& path, int error, const ClientOptions& options) {
  struct stat there = {};
  switch (error) {
    case ENOENT:
      return fmt::format("there is no such socket: does the {} run, and is this its {}?",
                         options.peer, options.key);
    case ENOTDIR:
      return "there is no such socket: a folder of that path is a file";
    case EACCES:
      return no_permission(path, options);
    case ECONNREFUSED:
      if (::stat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) return "is not a socket";
      return fmt::format("no process listens: its {} has ended", options.peer);
    default:
      return std::error_code(error, std::system_category()).message();
  }
}

std::string tcp_problem(const std::error_code& error) {
  if (error == asio::error::connection_refused) return "refused: nothing listens there";
  if (error == asio::error::timed_out) return "no answer";
  return error.message();
}

net::Task<ConnectedSocket> connect_unix(std::string path, ClientOptions options) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::local::stream_protocol::socket socket(executor);
  const asio::local::stream_protocol::endpoint endpoint(path);
  asio::steady_timer pause(executor);
  constexpr Duration kPause = 5ms;
  for (Duration waited = {};; waited += kPause) {
    std::error_code error;
    socket.close(error);
    socket.open(endpoint.protocol(), error);
    if (!error) socket.non_blocking(true, error);
    if (error) co_return std::unexpected(error.message());
    const int result =
        ::connect(socket.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
    if (result == 0) break;
    // The queue of the listener is full; nothing tells when it no longer is.
    if (errno != EAGAIN) co_return std::unexpected(unix_problem(path, errno, options));
    if (waited >= options.connect_within) {
      co_return std::unexpected("does not accept connections in time");
    }
    pause.expires_after(kPause);
    (void)co_await pause.async_wait(net::kUseTask);
  }
  co_return net::StreamSocket(std::move(socket));
}

// The name service may be silent, and others look hosts up beside.
net::Task<HostLookup::Found> look_up(PortAddress address, Duration patience) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  auto& context = static_cast<asio::io_context&>(asio::query(executor, asio::execution::context));
  HostLookup lookup(context, address);
  HostLookup::Found found = co_await lookup.wait(patience);
  co_return found;
}

net::Task<ConnectedSocket> connect_endpoints(std::string host, std::vector<net::Endpoint> endpoints,
                                             Duration patience) {
  std::string problem = fmt::format("host {} has no address", host);
  for (const net::Endpoint& endpoint : endpoints) {
    auto socket = co_await net::connect(endpoint, patience);
    if (socket) co_return net::StreamSocket(std::move(*socket));
    problem = tcp_problem(socket.error().code);
  }
  co_return std::unexpected(std::move(problem));
}

}  // namespace

net::Task<ConnectedSocket> connect_socket(PortAddress address, ClientOptions options,
                                          std::vector<net::Endpoint> known) {
  if (address.is_unix()) {
    co_return co_await connect_unix(std::move(address.path), std::move(options));
  }
  if (known.empty()) {
    auto endpoints = co_await look_up(address, options.connect_within);
    VPFS_CO_TRY(endpoints);
    known = std::move(*endpoints);
  }
  co_return co_await connect_endpoints(address.host, std::move(known), options.connect_within);
}

net::Task<Connected> connect_host(std::string host, std::vector<net::Endpoint> endpoints,
                                  ClientOptions options) {
  auto socket = co_await connect_endpoints(host, std::move(endpoints), options.connect_within);
  VPFS_CO_TRY(socket);
  co_return net::connect_tls(std::move(*socket), options.tls, host);
}

net::Task<Connected> connect_port(PortAddress address, ClientOptions options,
                                  std::vector<net::Endpoint> known) {
  if (!address.is_unix() && options.tls == nullptr) {
    co_return std::unexpected(
        "TCP needs a certificate, its key and the CA's certificate: --certificate, --key and --ca");
  }
  auto socket = co_await connect_socket(address, options, std::move(known));
  VPFS_CO_TRY(socket);
  if (address.is_unix()) co_return net::make_plain_channel(std::move(*socket));
  co_return net::connect_tls(std::move(*socket), options.tls, address.host);
}

}  // namespace vpfs::control
