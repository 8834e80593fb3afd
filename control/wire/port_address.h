#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vpfs::control {

// Where a control port is.
struct PortAddress {
  std::string path;  // of a UNIX socket; "": TCP
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const PortAddress&) const = default;

  [[nodiscard]] bool is_unix() const { return !path.empty(); }
};

// "unix:run/x.sock", "/run/x.sock", "./x.sock", "tcp:stor0:7311", "stor0:7311", "[::1]:7311". The
// error names the text.
[[nodiscard]] Result<PortAddress> parse_port_address(std::string_view text);
[[nodiscard]] std::string to_string(const PortAddress& address);
// "stor0:7311, /run/x.sock".
[[nodiscard]] std::string to_string(std::span<const PortAddress> addresses);

}  // namespace vpfs::control
