#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/histogram.h"
#include "schedulers/cost_model.h"
#include "sim/engine/engine.h"
#include "sim/proxies/replay/closed_loops.h"
#include "sim/proxies/replay/recorded_io.h"
#include "sim/proxies/replay/recorded_places.h"
#include "sim/proxies/server/proxied_server.h"
#include "stage/config/config.h"
#include "stage/rules/classifier.h"
#include "stage/rules/job_registry.h"

namespace vpfs::sim {

// What a virtual PFS got in the time of a recording.
struct ReplayedShare {
  std::string virtual_pfs;
  std::uint64_t requests = 0;  // that ended in it
  Bytes moved;
  LatencyHistogram wait;     // in the stage
  LatencyHistogram service;  // at the server
};

class SharesByName {
 public:
  // A name that is new gets the next number.
  [[nodiscard]] std::size_t number_of(const std::string& name);
  [[nodiscard]] ReplayedShare& operator[](std::size_t number) { return all_[number]; }
  // The busiest first.
  [[nodiscard]] std::vector<ReplayedShare> sorted() const;

 private:
  std::vector<ReplayedShare> all_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// As it was recorded, the busiest first.
[[nodiscard]] std::vector<ReplayedShare> recorded_shares(const RecordedLoad& load);

// What it would have been with another configuration: the recorded requests pass the stage and the
// schedulers of a proxy, before a device. A loop (ClosedLoop) sends its next request when its last
// one has ended, so what is served sooner also comes sooner.
class Replay {
 public:
  // All outlive it. REQUIRES: the configuration was read without errors.
  Replay(const RecordedLoad& load, const DeviceSettings& device, const stage::Config& config);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  [[nodiscard]] Duration length() const { return load_.length; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  void run_until(Duration time);
  // What the rules ask for and a recording does not have: "directory". If there is anything,
  // requests stay in the virtual PFS that they were recorded in, where the configuration has it or
  // a template for it.
  [[nodiscard]] const std::vector<std::string>& not_recorded() const { return not_recorded_; }
  // Recorded requests that should stay where they were, and for which the configuration has no
  // place. The rules place them by what is recorded.
  [[nodiscard]] std::uint64_t moved() const { return moved_; }
  // Virtual PFSes to which rules with different traffic classes, exemptions or templates lead, by
  // what is not recorded.
  [[nodiscard]] std::vector<std::string> ambiguous() const {
    return {places_.ambiguous().begin(), places_.ambiguous().end()};
  }
  // The busiest first. REQUIRES: run_until(length()).
  [[nodiscard]] std::vector<ReplayedShare> shares() const;

 private:
  struct Loop;

  void begin_later(Loop& loop, TimePoint time);
  void begin(Loop& loop);
  void done(ProxiedServer::Request& request);
  struct Belonging {
    stage::Place place;
    std::uint8_t traffic_class = 0;
    std::size_t share = 0;  // index
  };
  struct Matched {
    stage::Classifier::Match match;
    bool moved = false;  // see moved()
  };
  [[nodiscard]] Matched match_of(const RecordedSource& who, IoKind kind);
  void count_moved();
  [[nodiscard]] const Belonging& belonging_of(std::uint32_t source, IoKind kind);

  const RecordedLoad& load_;
  const stage::Config& config_;
  CostModel cost_;
  stage::JobRegistry jobs_;
  stage::Classifier classifier_;
  Engine engine_;
  std::vector<std::string> not_recorded_;
  RecordedPlaces places_;
  std::uint64_t moved_ = 0;
  std::vector<ClosedLoop> recorded_;
  std::deque<Loop> loops_;
  std::unique_ptr<ProxiedServer> server_;
  std::vector<std::optional<Belonging>> belongings_;  // by source and kind
  SharesByName shares_;
  std::uint64_t events_ = 0;
};

}  // namespace vpfs::sim
