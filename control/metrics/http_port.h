#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "control/metrics/http_config.h"
#include "control/metrics/http_tls.h"
#include "control/wire/control.pb.h"
#include "net/endpoint.h"

namespace vpfs::control {

// The stage or coordinator that an HTTP port tells of. All are called on the port's thread and must
// not block.
struct HttpSource {
  // Calls `answer` once with the statistics and the rules, at once or later, from any thread, also
  // when the port is gone. A request without an answer fails after a while.
  std::function<void(std::function<void(StatsReply)> answer)> stats;
  // Why the stage cannot serve clients; "": it can.
  std::function<std::string()> not_ready;
  // Used instead of `stats` by programs that are not stages. Calls `answer` once, likewise, with a
  // function that makes the text and is called on the port's thread.
  using MakeText = std::function<std::string()>;
  std::function<void(std::function<void(MakeText)> answer)> metrics = nullptr;
  // What the page asks, as one that may read. Calls `answer` once, likewise. Nothing: there is no
  // page.
  std::function<void(Envelope question, std::function<void(Envelope)> answer)> ask = nullptr;
  bool is_site = false;  // the page is a coordinator's
};

struct HttpLimits {
  // Beyond it, the connection that has sent nothing complete for longest is closed.
  std::size_t connections = 64;
  std::size_t head = std::size_t{8} * 1024;
  Duration patience = std::chrono::seconds(5);  // for a request and its answer
  Duration stats_patience = std::chrono::seconds(2);
  Duration fresh = std::chrono::seconds(1);  // metrics are made at most this often
  std::size_t questions = 8;                 // that may wait for their turn; others are refused
  std::size_t answers = 16;                  // that are kept for those that ask the same
};

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
                                                              std::optional<HttpTls> tls = {});
  [[nodiscard]] static Result<std::unique_ptr<HttpPort>> open(const HttpConfig& config,
                                                              HttpSource source,
                                                              std::string version,
                                                              const Clock& clock) {
    return open(config, std::move(source), std::move(version), clock, HttpLimits());
  }
  ~HttpPort();
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
