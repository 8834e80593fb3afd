#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/metrics/http_port.h"
#include "control/metrics/http_tls.h"
#include "control/wire/port_config.h"
#include "net/inherited.h"

namespace vpfs::control {

// The HTTP ports of one program, which serve the same: the one for this host, and the one with TLS
// for others. Each is there if the configuration has it.
class HttpPorts {
 public:
  HttpPorts() = default;
  // As HttpPort::open(). `control` has the certificate, the readers and the writers.
  [[nodiscard]] static Result<HttpPorts> open(const HttpConfig& config, const PortConfig& control,
                                              const HttpSource& source, const std::string& version,
                                              const Clock& clock) {
    return open(config, control, source, version, clock, nullptr, true);
  }
  // The same with listeners of another process. Not `at_once`: they serve from start() on.
  [[nodiscard]] static Result<HttpPorts> open(const HttpConfig& config, const PortConfig& control,
                                              const HttpSource& source, const std::string& version,
                                              const Clock& clock, net::Inherited* inherited,
                                              bool at_once);
  [[nodiscard]] Result<void> start();
  // For another process, by the names that open() looks for.
  [[nodiscard]] std::vector<std::pair<std::string, int>> descriptors() const;

  void close() {
    plain_.reset();
    tls_.reset();
  }
  [[nodiscard]] bool has_tls() const { return tls_ != nullptr; }
  // As HttpPort::use(). REQUIRES: has_tls().
  void use(HttpTls tls) { tls_->use(std::move(tls)); }

 private:
  std::unique_ptr<HttpPort> plain_;
  std::unique_ptr<HttpPort> tls_;
};

}  // namespace vpfs::control
