#include "control/metrics/http_ports.h"

namespace vpfs::control {
namespace {
constexpr const char* kHttp = "control.http";
constexpr const char* kHttps = "control.https";
}  // namespace

Result<HttpPorts> HttpPorts::open(const HttpConfig& config, const PortConfig& control,
                                  const HttpSource& source, const std::string& version,
                                  const Clock& clock, net::Inherited* inherited, bool at_once) {
  HttpPorts ports;
  const auto start = [&](const char* name) {
    return HttpPort::Start{.inherited = net::Inherited::take_from(inherited, name),
                           .at_once = at_once};
  };
  if (config.enabled()) {
    auto plain = HttpPort::open(config, source, version, clock, HttpLimits(), {}, start(kHttp));
    VPFS_TRY(plain);
    ports.plain_ = std::move(*plain);
  }
  if (config.has_tls()) {
    auto tls = load_http_tls(control);
    VPFS_TRY(tls);
    auto port = HttpPort::open(config, source, version, clock, HttpLimits(), std::move(*tls),
                               start(kHttps));
    VPFS_TRY(port);
    ports.tls_ = std::move(*port);
  }
  return ports;
}

Result<void> HttpPorts::start() {
  for (const std::unique_ptr<HttpPort>* each : {&plain_, &tls_}) {
    if (*each != nullptr) {
      VPFS_TRY((*each)->start());
    }
  }
  return {};
}

std::vector<std::pair<std::string, int>> HttpPorts::descriptors() const {
  std::vector<std::pair<std::string, int>> all;
  if (plain_ != nullptr) all.emplace_back(kHttp, plain_->native_handle());
  if (tls_ != nullptr) all.emplace_back(kHttps, tls_->native_handle());
  return all;
}

}  // namespace vpfs::control
