#include "client/orangefs/calls/mount_address.h"

#include <fmt/format.h>

namespace vpfs::client {
namespace {
constexpr std::string_view kSeparator = "://";
}  // namespace

Result<ServerAddress> parse_server_address(std::string_view text) {
  const std::size_t separator = text.find(kSeparator);
  const std::string_view scheme = text.substr(0, separator);
  if (separator == std::string_view::npos || (scheme != "tcp" && !scheme.starts_with("tcp-"))) {
    return fail(fmt::format("'{}' is not an address: expected tcp://HOST:PORT", text));
  }
  const std::string_view host_port = text.substr(separator + kSeparator.size());
  const std::size_t colon = host_port.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == host_port.size()) {
    return fail(fmt::format("'{}' is not an address: expected tcp://HOST:PORT", text));
  }
  return ServerAddress{.scheme = std::string(scheme), .host_port = std::string(host_port)};
}

Result<MountAddress> parse_mount_address(std::string_view text) {
  const std::size_t separator = text.find(kSeparator);
  const std::size_t begin = separator == std::string_view::npos ? 0 : separator + kSeparator.size();
  const std::size_t slash = text.find('/', begin);
  if (slash == std::string_view::npos || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos) {
    return fail(
        fmt::format("'{}' is not a mount address: expected tcp://HOST:PORT/FILE_SYSTEM", text));
  }
  Result<ServerAddress> server = parse_server_address(text.substr(0, slash));
  if (!server)
    return fail(
        fmt::format("'{}' is not a mount address: expected tcp://HOST:PORT/FILE_SYSTEM", text));
  return MountAddress{.scheme = std::move(server->scheme),
                      .host_port = std::move(server->host_port),
                      .file_system = std::string(text.substr(slash + 1))};
}

}  // namespace vpfs::client
