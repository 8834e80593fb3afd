#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "sim/proxies/coordinator/simulated_coordinator.h"
#include "sim/proxies/server/proxied_server.h"
#include "sim/proxies/whatif/entitlement.h"
#include "sim/proxies/whatif/scenario.h"
#include "stage/config/config.h"
#include "stage/rules/classifier.h"
#include "stage/rules/job_registry.h"

namespace vpfs::sim {

// What an application got. Rates and times are of requests that ended in the measured time.
struct ApplicationResult {
  std::string name;
  std::string virtual_pfs;  // of its reads, or of its writes if it only writes
  Promise promise;          // to that, on the application's servers
  Bytes moved;
  std::uint64_t requests = 0;
  LatencyHistogram latency;   // of whole requests, as the application sees them
  LatencyHistogram held;      // of each server's part of them, in the stage
  std::vector<Bytes> course;  // moved in each interval of the measured time
};

struct WhatIfResult {
  std::vector<ApplicationResult> applications;  // in the order of the scenario
  TimePoint end;
  std::uint64_t events = 0;
};

// Why the scenario's coordinator.policy cannot do anything with stages of that configuration; "":
// it can.
[[nodiscard]] std::string problem_of(const Scenario& scenario, const stage::Config& config);

// Runs a scenario in virtual time: what would each application get with this configuration? Every
// server has a stage of its own, with the rules, shares and schedulers that a vpfs-proxy has. The
// same scenario and configuration give the same result on every machine.
class WhatIf {
 public:
  // Both outlive it. REQUIRES: both were read without errors, and problem_of() is empty.
  WhatIf(const Scenario& scenario, const stage::Config& config);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  [[nodiscard]] Duration length() const { return scenario_.run_length(); }
  [[nodiscard]] Duration now() const { return engine_.now() - TimePoint(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  // Runs up to that time from the beginning, or to a problem().
  void run_until(Duration time);
  // Why the run has ended early; "": it has not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // REQUIRES: run_until(length()), and there is no problem.
  [[nodiscard]] WhatIfResult result() const;

 private:
  struct Process;
  struct Replay;
  struct Io;
  struct Part;

  void start(std::size_t application);
  // How many servers its files are on.
  [[nodiscard]] std::uint64_t servers_of(const SimulatedApplication& settings) const;
  // When the application may begin a request, at or after `time`; kNever: not any more.
  [[nodiscard]] TimePoint next_start(const SimulatedApplication& settings, TimePoint time) const;
  // The next request of a closed loop, or the next arrival.
  void begin_later(Process& process, TimePoint time);
  void begin(Process& process);
  void arrive_next(Process& process, TimePoint time);
  void arrive_recorded(Replay& replay);
  void end_if_too_many();
  void part_done(ProxiedServer::Request& request);
  void end(Io& io);
  // Whether now is in the measured time.
  [[nodiscard]] bool is_measured() const;
  [[nodiscard]] stage::Place place_of(std::size_t application, std::size_t server, IoKind kind,
                                      std::uint8_t& traffic_class);

  const Scenario& scenario_;
  const stage::Config& config_;
  CostModel cost_;
  stage::JobRegistry jobs_;
  stage::Classifier classifier_;
  Engine engine_;
  std::vector<std::unique_ptr<ProxiedServer>> servers_;
  std::optional<SimulatedCoordinator> coordinator_;
  std::vector<ApplicationResult> results_;
  // By application, server and kind, once a request was there.
  struct Belonging {
    stage::Place place;
    std::uint8_t traffic_class = 0;
  };
  std::vector<std::optional<Belonging>> places_;
  std::deque<Process> processes_;
  std::deque<Replay> replays_;
  std::deque<Io> ios_;
  std::deque<Part> parts_;
  std::vector<Io*> free_ios_;
  std::vector<Part*> free_parts_;
  std::vector<std::uint64_t> under_way_;  // requests, by application
  std::string problem_;
  std::uint64_t events_ = 0;
};

}  // namespace vpfs::sim
