#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/gate/stage_gate.h"
#include "schedulers/policy.h"

namespace vpfs::control {

// What SnapshotReader copied from the stage for the status. Its parts are a few microseconds apart.
struct StageSnapshot {
  struct Latencies {
    Duration p50 = {};
    Duration p99 = {};
    Duration max = {};
  };
  // Why the oldest request waits.
  struct Wait {
    // The reason as people read it, with the name of kept_for.
    [[nodiscard]] std::string text() const;

    std::optional<Duration> since;                          // its arrival, if known
    std::string_view reason;                                // a static text
    std::shared_ptr<const stage::VirtualPfsInfo> kept_for;  // the end of the text
    std::optional<Duration> may_go_in;                      // if it waits for a time
    std::optional<std::uint32_t> target;                    // of the lane
  };
  struct Row {
    std::shared_ptr<const stage::VirtualPfsInfo> info;
    stage::Counters counters;
    stage::ShareWatch::Verdict share;
    StatusFields report;  // with one lane
    std::optional<Wait> wait;
    Latencies held;
    Latencies service;
    stage::Amount unscheduled;
    stage::IoStatistics statistics;
    stage::VirtualPfsId id;
    std::shared_ptr<const std::string> rule;  // of its last request; nothing: none, or it is gone
    std::uint8_t traffic_class = 0;           // likewise
    std::string jobid;
    Limits allocated;  // by a coordinator
  };
  struct Rule {
    std::shared_ptr<const std::string> name;
    std::uint64_t hits = 0;
    std::uint64_t made = 0;
    std::optional<Duration> idle;                           // since the last hit
    std::optional<stage::ShadowLimits::Report> would_hold;  // of a shadow rule
  };
  struct LaneFlow {
    std::shared_ptr<const stage::VirtualPfsInfo> info;
    std::size_t queued = 0;
    StatusFields report;
  };
  struct Lane {
    std::optional<std::uint32_t> target;
    Depth depth;
    StatusFields server;
    std::size_t queued = 0;
    std::size_t outstanding = 0;
    std::vector<LaneFlow> flows;  // those with requests; only with several lanes
  };
  struct Client {
    std::string name;
    std::size_t connections = 0;
    std::optional<std::size_t> allowance;
    std::uint64_t refused = 0;
  };

  std::vector<Row> rows;    // all virtual PFSes by number, "default" first
  std::vector<Lane> lanes;  // at least one
  std::vector<Rule> rules;  // "default" first, then in any order
  TimePoint at = {};        // of the stage
  bool bypass = false;
  std::size_t unscheduled = 0;  // at the data server
  std::vector<Client> clients;
  std::uint64_t virtual_pfs_refused = 0;
  struct Coordinator {
    std::optional<stage::Epoch> epoch;   // of the last cycle
    std::optional<Duration> lease_left;  // while a lease is in force
    stage::Allocations::Counts counts;
  } coordinator;
  struct Retired {
    std::uint64_t count = 0;
    stage::Counters counters;
    Latencies held;
    Latencies service;
    stage::Amount unscheduled;
    stage::IoStatistics statistics;
  } retired;
};

// Copies the stage for the status, a few rows at a time, so that a request waits a few microseconds
// at most. Slow work is done outside the lock. A histogram is copied only if it has changed since
// the last call.
class SnapshotReader {
 public:
  [[nodiscard]] StageSnapshot read(StageGate& gate, TimePoint now);

 private:
  struct Known {
    stage::VirtualPfsId id;
    std::uint64_t counts = 0;  // of both histograms
    StageSnapshot::Latencies held;
    StageSnapshot::Latencies service;
    stage::Amount unscheduled;
    stage::IoStatistics statistics;
  };

  void read_lanes(StageGate& gate, TimePoint now, StageSnapshot& to);
  void read_rows(StageGate& gate, TimePoint now, StageSnapshot& to);
  void read_flows(StageGate& gate, TimePoint now, StageSnapshot& to) const;
  void read_latencies(StageGate& gate, TimePoint now, StageSnapshot& to);
  static void read_rules(StageGate& gate, TimePoint now, StageSnapshot& to);
  void read_clients(StageGate& gate, TimePoint now, StageSnapshot& to) const;

  std::vector<Known> known_;                   // by number
  std::vector<stage::VirtualPfsId> ids_;       // of the snapshot's rows
  std::vector<stage::Histograms> histograms_;  // copies, for a few rows at a time
};

}  // namespace vpfs::control
