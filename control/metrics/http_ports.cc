#include "control/metrics/http_ports.h"

namespace vpfs::control {

Result<HttpPorts> HttpPorts::open(const HttpConfig& config, const PortConfig& control,
                                  const HttpSource& source, const std::string& version,
                                  const Clock& clock) {
  HttpPorts ports;
  if (config.enabled()) {
    auto plain = HttpPort::open(config, source, version, clock);
    VPFS_TRY(plain);
    ports.plain_ = std::move(*plain);
  }
  if (config.has_tls()) {
    auto tls = load_http_tls(control);
    VPFS_TRY(tls);
    auto port = HttpPort::open(config, source, version, clock, HttpLimits(), std::move(*tls));
    VPFS_TRY(port);
    ports.tls_ = std::move(*port);
  }
  return ports;
}

}  // namespace vpfs::control
