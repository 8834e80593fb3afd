#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/dispatcher.h"
#include "schedulers/policy.h"

namespace vpfs::proxy {

// What StatusReader copied from the stage for the status. Its parts are a few microseconds apart.
struct StatusSnapshot {
  struct Latencies {
    Duration p50 = {};
    Duration p99 = {};
    Duration max = {};
  };
  // Why the oldest request waits.
  struct Wait {
    std::optional<Duration> since;        // its arrival, if known
    std::string_view reason;              // a static text
    std::optional<Duration> may_go_in;    // if it waits for a time
    std::optional<std::uint32_t> target;  // of the lane
  };
  struct Row {
    std::shared_ptr<const stage::VirtualPfsInfo> info;
    stage::Counters counters;
    StatusFields report;  // with one lane
    std::optional<Wait> wait;
    Latencies held;
    Latencies service;
    stage::Amount unscheduled;
    std::shared_ptr<const std::string> rule;  // of its last request; nothing: none, or it is gone
    std::uint8_t traffic_class = 0;           // likewise
    std::string jobid;
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
  bool bypass = false;
  std::size_t unscheduled = 0;  // at the data server
  std::vector<Client> clients;
  std::uint64_t virtual_pfs_refused = 0;
  struct Retired {
    std::uint64_t count = 0;
    stage::Counters counters;
    Latencies held;
    Latencies service;
    stage::Amount unscheduled;
  } retired;
};

// Copies the stage for the status, a few rows at a time, so that a request waits a few microseconds
// at most. Slow work is done outside the lock. A histogram is copied only if it has changed since
// the last call.
class StatusReader {
 public:
  [[nodiscard]] StatusSnapshot read(Dispatcher& dispatcher, TimePoint now);

 private:
  struct Known {
    stage::VirtualPfsId id;
    std::uint64_t counts = 0;  // of both histograms
    StatusSnapshot::Latencies held;
    StatusSnapshot::Latencies service;
    stage::Amount unscheduled;
  };

  void read_lanes(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_rows(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_flows(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to) const;
  void read_latencies(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  static void read_rules(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_clients(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to) const;

  std::vector<Known> known_;                   // by number
  std::vector<stage::VirtualPfsId> ids_;       // of the snapshot's rows
  std::vector<stage::Histograms> histograms_;  // copies, for a few rows at a time
};

}  // namespace vpfs::proxy
