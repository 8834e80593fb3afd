#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/admin/administration.h"
#include "control/metrics/http_port.h"
#include "control/wire/dialled_coordinator.h"
#include "control/wire/owner.h"
#include "control/wire/port.h"
#include "proxy/config.h"
#include "proxy/dispatcher.h"
#include "proxy/shared_state.h"

namespace vpfs::proxy {

// The proxy as administrators, coordinators and scrapers of metrics reach it: the control port and
// the HTTP port, each with a thread of its own. What administrators ask goes to the main thread; a
// coordinator's cycles go to the dispatcher at once.
class ControlSide final : public control::Owner {
 public:
  // All outlive it. `context` is the main thread's.
  ControlSide(control::Administration& administration, Dispatcher& dispatcher,
              const SharedState& shared, asio::io_context& context);
  ~ControlSide() override { stop(); }
  ControlSide(const ControlSide&) = delete;
  ControlSide& operator=(const ControlSide&) = delete;

  // Opens the ports that the configuration has. The error names the key.
  [[nodiscard]] Result<void> open(const Config& config, const std::string& address);
  // Another configuration is in force, at its start too.
  void introduce(const Config& config, const std::string& address);
  // Opens the control port if there is none yet.
  [[nodiscard]] Result<void> reload(const Config& config);
  // Closes the ports. No request comes after it.
  void stop();

  // The coordinator that the proxy connects to.
  [[nodiscard]] std::optional<control::DialledCoordinator> coordinator() const;

  // From the threads of the ports.
  [[nodiscard]] control::Hello hello() const override;
  void ask(control::Envelope request, const control::Caller& caller,
           control::Answer answer) override;
  [[nodiscard]] std::unique_ptr<control::Link> make_link(const control::Caller& caller) override;
  void cycle(const control::Cycle& cycle, control::Link& link,
             control::CycleAnswer& answer) override;

 private:
  [[nodiscard]] Result<void> open_port(const Config& config);

  control::Administration& administration_;
  Dispatcher& dispatcher_;
  const SharedState& shared_;
  asio::io_context& context_;
  const std::uint64_t incarnation_;
  std::atomic<bool> metadata_caps_ = false;
  std::atomic<std::uint64_t> term_ = 0;  // of the last cycle that was applied; 0: there was none
  mutable std::mutex mutex_;             // guards what follows
  control::Hello hello_;
  std::unique_ptr<control::Port> port_;  // of the main thread, as the other one
  std::unique_ptr<control::HttpPort> http_;
};

}  // namespace vpfs::proxy
