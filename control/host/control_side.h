#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/gate/stage_gate.h"
#include "control/host/config.h"
#include "control/metrics/http_ports.h"
#include "control/wire/accounts.h"
#include "control/wire/dialled_coordinator.h"
#include "control/wire/owner.h"
#include "control/wire/port.h"
#include "net/inherited.h"
#include "stage/allocations.h"

namespace vpfs::control {

// A stage as administrators, coordinators and scrapers of metrics reach it: the control port and
// the HTTP port, each with a thread of its own. Requests of administrators go to the main thread; a
// coordinator's cycles go to the gate at once.
class ControlSide final : public Owner {
 public:
  // The program that has the stage.
  struct Identity {
    std::string name;  // "vpfs-proxy"
    // Why the stage cannot serve clients; "": it can. Called by the HTTP port's thread.
    std::function<std::string()> not_ready;
    Accounts accounts;  // those of `readers`, `writers` and `group`; no wait after the start
  };
  // Answers what administrators ask. Called by the main thread.
  using Administrate =
      std::function<void(const Envelope& request, const Caller& caller, const Answer& answer)>;

  // All outlive it. `context` is the main thread's.
  ControlSide(Administrate administrate, StageGate& gate, Identity program,
              asio::io_context& context, const Clock& clock);
  // The same in the place of another process: coordinators see one stage that never went away.
  // Before open().
  void take_the_place_of(std::uint64_t incarnation) { incarnation_ = incarnation; }
  ~ControlSide() override { stop(); }
  ControlSide(const ControlSide&) = delete;
  ControlSide& operator=(const ControlSide&) = delete;

  // Opens the ports that the configuration has. The error names the key. `address` names a stage
  // that has no name in its configuration.
  // No request is served before start(). `inherited` has what the process before gave, or is null.
  [[nodiscard]] Result<void> open(const HostConfig& config, const std::string& address,
                                  net::Inherited* inherited);
  [[nodiscard]] Result<void> start();
  // Another configuration is in force, at its start too.
  void introduce(const HostConfig& config, const std::string& address);
  // Opens the control port if there is none yet.
  [[nodiscard]] Result<void> reload(const HostConfig& config);
  // The log was renamed.
  void reopen_audit();
  // Closes the ports. No request comes after it.
  void stop();
  // The same, but the listeners are another process's from now on.
  void leave();
  // While another process takes over, cycles of coordinators are refused: it would not know what
  // they change. Once this returns, one that was applied before is. From any thread.
  void refuse_cycles(bool refuses);
  // Those, by the names that open() looks for.
  [[nodiscard]] std::vector<std::pair<std::string, int>> descriptors() const;
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  [[nodiscard]] std::uint64_t term() const { return term_; }
  // That of the last cycle that was applied, by the process before.
  void set_term(std::uint64_t term) { term_ = term; }

  // The coordinator that the stage connects to.
  [[nodiscard]] std::optional<DialledCoordinator> coordinator() const;

  // When the certificate of its ports ends.
  [[nodiscard]] std::optional<WallTime> certificate_end() const { return certificate_end_; }

  // From the threads of the ports.
  [[nodiscard]] Hello hello() const override;
  void ask(Envelope request, const Caller& caller, Answer answer) override;
  [[nodiscard]] std::unique_ptr<Link> make_link(const Caller& caller) override;
  void cycle(const Cycle& cycle, Link& link, CycleAnswer& answer) override;

 private:
  [[nodiscard]] Result<void> open_port(const HostConfig& config, net::Inherited* inherited);
  // Why the allocations were not applied; nothing: they were.
  [[nodiscard]] std::optional<Error> apply(const Cycle& cycle,
                                           std::span<const stage::Allocation> allocations);
  void look_at_certificate(const HostConfig& config);
  [[nodiscard]] Result<void> open_http(const HostConfig& config, net::Inherited* inherited);

  const Administrate administrate_;
  StageGate& gate_;
  const Identity program_;
  asio::io_context& context_;
  const Clock& clock_;
  std::uint64_t incarnation_;  // does not change after open()
  std::atomic<bool> metadata_caps_ = false;
  std::atomic<std::uint64_t> term_ = 0;  // of the last cycle that was applied; 0: there was none
  std::mutex cycles_;                    // guards the following, while a cycle is applied too
  bool refuses_cycles_ = false;
  mutable std::mutex mutex_;  // guards what follows
  Hello hello_;
  std::unique_ptr<Port> port_;  // of the main thread, as the other one
  HttpPorts http_;
  std::optional<WallTime> certificate_end_;  // of the main thread
};

}  // namespace vpfs::control
