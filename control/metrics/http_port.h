#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "control/metrics/http_answers.h"
#include "control/metrics/http_config.h"
#include "control/metrics/http_tls.h"
#include "net/descriptor.h"
#include "net/endpoint.h"

namespace vpfs::control {

// Serves /metrics (for Prometheus), /healthz (the process answers), /readyz (it serves clients),
// and a page for people with what that asks (see control/web) over HTTP, one request for each
// connection. It has a thread of its own.
class HttpPort {
 public:
  // Listens, and serves until it is destroyed, which takes milliseconds whatever clients do.
  // `version` is the program's. The clock outlives the port. The error begins with the key.
  // Without `tls` it is the port of config.address, with it the one of config.tls_address.
  [[nodiscard]] static Result<std::unique_ptr<HttpPort>> open(const HttpConfig& config,
                                                              HttpSource source,
                                                              std::string version,
                                                              const Clock& clock, HttpLimits limits,
                                                              std::optional<HttpTls> tls = {}) {
    return open(config, std::move(source), std::move(version), clock, limits, std::move(tls),
                Start());
  }
  // The same with a listener that another process has given, if any. Not `at_once`: it serves from
  // start() on.
  struct Start {
    net::Descriptor inherited;
    bool at_once = true;
  };
  [[nodiscard]] static Result<std::unique_ptr<HttpPort>> open(
      const HttpConfig& config, HttpSource source, std::string version, const Clock& clock,
      HttpLimits limits, std::optional<HttpTls> tls, Start start);
  [[nodiscard]] static Result<std::unique_ptr<HttpPort>> open(const HttpConfig& config,
                                                              HttpSource source,
                                                              std::string version,
                                                              const Clock& clock) {
    return open(config, std::move(source), std::move(version), clock, HttpLimits());
  }
  ~HttpPort();
  [[nodiscard]] Result<void> start();
  // The descriptor of its listener.
  [[nodiscard]] int native_handle() const;
  HttpPort(const HttpPort&) = delete;
  HttpPort& operator=(const HttpPort&) = delete;

  // For connections that come from now on. REQUIRES: it was opened with TLS.
  void use(HttpTls tls);

  [[nodiscard]] net::Endpoint local_endpoint() const { return endpoint_; }

 private:
  class State;
  explicit HttpPort(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
  net::Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace vpfs::control
