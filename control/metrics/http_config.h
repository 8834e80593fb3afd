#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/config_reader.h"
#include "base/result.h"

namespace vpfs::control {

// The HTTP ports for people, for Prometheus and for health checks.
struct HttpConfig {
  std::string address;                  // HOST:PORT, loopback; "": no port
  std::string tls_address;              // HOST:PORT of one with TLS; "": none
  std::size_t most_virtual_pfs = 1000;  // see MetricsOptions

  bool operator==(const HttpConfig&) const = default;
  [[nodiscard]] bool enabled() const { return !address.empty(); }
  [[nodiscard]] bool has_tls() const { return !tls_address.empty(); }
};

// Reads the keys `http`, `https` and `http_virtual_pfs` of the mapping `control`. Looks at the text
// only.
void read_http(ConfigReader& control, HttpConfig& config);

// The port without TLS serves all that connect, so only this host may: the error says so.
[[nodiscard]] Result<void> check_loopback(std::string_view address);

}  // namespace vpfs::control
