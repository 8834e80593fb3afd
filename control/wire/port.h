#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/wire/accounts.h"
#include "control/wire/dialled_coordinator.h"
#include "control/wire/owner.h"
#include "control/wire/port_config.h"
#include "control/wire/port_limits.h"
#include "control/wire/protocol.h"
#include "net/endpoint.h"
#include "net/inherited.h"

namespace vpfs::control {

class Audit;
class PortState;

// The control port of a stage: a UNIX socket, and TCP with TLS where both sides show certificates;
// and a connection to a coordinator that does not know the stage, which then asks like a peer.
// It has a thread of its own, on which it calls its owner.
class Port {
 public:
  struct Options {
    PortLimits limits;
    Versions versions;
    Accounts accounts;                    // for open() and reload()
    net::Inherited* inherited = nullptr;  // listeners of the process before; for open() alone
  };

  // Opens the sockets; no request is served before start(). The owner and the clock outlive the
  // port. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<Port>> open(const PortConfig& config, Owner& owner,
                                                          const Clock& clock, Options options);
  [[nodiscard]] static Result<std::unique_ptr<Port>> open(const PortConfig& config, Owner& owner,
                                                          const Clock& clock) {
    return open(config, owner, clock, Options());
  }
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void start();
  // Sends answers that are there (for at most half a second), then closes all and ends the thread.
  // The owner is not called any more. Idempotent.
  void stop();

  // The sockets are those of another process from now on. Requests are refused (kTakenOver) until
  // stop(), which takes up to 100 ms then.
  void leave();
  // For that process, by the names that open() looks for. Before stop().
  [[nodiscard]] std::vector<std::pair<std::string, int>> descriptors() const;

  // Reads certificates, users and groups again, and opens the audit log anew. Connections stay;
  // their rights are the new ones. On an error everything stays as it was.
  [[nodiscard]] Result<void> reload(const PortConfig& config);

  // Opens the audit log alone anew. A problem is logged, and lines go where they went.
  void reopen_audit();

  [[nodiscard]] const PortCounters& counters() const;
  // The coordinator that this port connects to. Any thread.
  [[nodiscard]] std::optional<DialledCoordinator> coordinator() const;
  [[nodiscard]] const Audit& audit() const;
  // Where TCP listens.
  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const { return tcp_endpoint_; }

 private:
  Port(PortConfig config, Accounts accounts, std::unique_ptr<PortState> state);

  PortConfig config_;
  const Accounts accounts_;
  std::unique_ptr<PortState> state_;
  std::optional<net::Endpoint> tcp_endpoint_;
  std::thread thread_;
  bool left_ = false;
  bool stopped_ = false;
};

}  // namespace vpfs::control
