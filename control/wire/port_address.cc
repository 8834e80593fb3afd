#include "control/wire/port_address.h"

#include <vector>

#include <fmt/format.h>

#include "base/joined.h"
#include "net/endpoint.h"
#include "net/unix_socket.h"

namespace vpfs::control {

Result<PortAddress> parse_port_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::string_view kTcp = "tcp:";
  const bool tcp = text.starts_with(kTcp);
  if (text.starts_with(kUnix) || (!tcp && text.find('/') != std::string_view::npos)) {
    const std::string_view path = text.starts_with(kUnix) ? text.substr(kUnix.size()) : text;
    if (path.empty() || path.find('\0') != std::string_view::npos) {
      return fail(fmt::format("\"{}\" has no path of a socket", text));
    }
    if (path.size() > net::kMostSocketPath) {
      return fail(fmt::format("\"{}\": the path of a socket has at most {} bytes", text,
                              net::kMostSocketPath));
    }
    return PortAddress{.path = std::string(path), .host = ""};
  }
  const auto parts = net::split_address(tcp ? text.substr(kTcp.size()) : text);
  if (!parts || parts->port == 0) {
    return fail(
        fmt::format("\"{}\" is not a control port: expected the path of a socket "
                    "(/run/vpfs/stor0.sock) or HOST:PORT",
                    text));
  }
  return PortAddress{.path = "", .host = std::string(parts->host), .port = parts->port};
}

std::string to_string(const PortAddress& address) {
  if (address.is_unix()) return address.path;
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
              : fmt::format("{}:{}", address.host, address.port);
}

std::string to_string(std::span<const PortAddress> addresses) {
  std::vector<std::string> texts;
  for (const PortAddress& address : addresses) texts.push_back(to_string(address));
  return joined(texts);
}

}  // namespace vpfs::control
