#include "control/metrics/http_config.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/result.h"
#include "net/endpoint.h"

namespace vpfs::control {

void read_http(ConfigReader& control, HttpConfig& config) {
  if (control.get("http", &config.address)) {
    if (const Result<void> good = check_loopback(config.address); !good) {
      control.report("http", good.error().message);
    }
  }
  if (control.get("https", &config.tls_address)) {
    if (const auto parts = net::split_address(config.tls_address); !parts) {
      control.report("https", parts.error().message);
    }
  }
  std::uint64_t most = config.most_virtual_pfs;
  if (control.get("http_virtual_pfs", &most, 1, 100'000)) config.most_virtual_pfs = most;
}

Result<void> check_loopback(std::string_view address) {
  const Result<net::HostPort> parts = net::split_address(address);
  VPFS_TRY(parts);
  std::error_code no_address;
  const asio::ip::address ip = asio::ip::make_address(std::string(parts->host), no_address);
  if (no_address ? parts->host == "localhost" : ip.is_loopback()) return {};
  return fail(fmt::format(
      "'{}' is not a loopback address: this port has neither TLS nor passwords, so it serves this "
      "host only (127.0.0.1, [::1] or localhost); control.https serves others",
      address));
}

}  // namespace vpfs::control
