#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/office/elected.h"
#include "control/coordinator/office/office.h"
#include "control/metrics/own_part.h"
#include "control/store/store_thread.h"
#include "control/wire/owner.h"
#include "net/manager/heartbeat.h"
#include "net/signal_queue.h"

namespace vpfs::coordinator {

// A coordinator in office: leads until a signal, or until the office is lost. One thread.
class Leader {
 public:
  enum class Ending : std::uint8_t {
    signal,  // SIGTERM or SIGINT
    lost,    // another coordinator leads, or may lead from now on
    later,   // it needs the term least_term() at least
  };

  // All that is a reference outlives it.
  struct Parts {
    const Config& config;
    const Clock& clock;
    const Coordinator::Options& options;
    const Elected& elected;
    control::StoreThread& store;
    const net::SignalQueue& signals;       // SIGTERM, SIGINT, SIGUSR2
    control::OwnPart* own_part = nullptr;  // as SiteAdministration::Parts has it
    // An aggregator may begin a later term, so long after it was found to need one.
    std::optional<Duration> later_term_after = {};
  };

  // Its sockets are open. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<Leader>> make(const Parts& parts);
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  [[nodiscard]] Ending run();

  [[nodiscard]] const Coordinator& coordinator() const { return *coordinator_; }
  [[nodiscard]] std::uint64_t least_term() const { return least_term_; }

 private:
  explicit Leader(const Parts& parts);

  void take_signal(int signal);
  void lose(const std::string& why);

  const Config config_;
  const std::uint64_t term_;
  asio::io_context context_{1};
  net::SignalReader signals_;
  net::Heartbeat heartbeat_;
  Office office_;
  Ending ending_ = Ending::signal;
  std::uint64_t least_term_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace vpfs::coordinator
