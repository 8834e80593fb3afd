#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/dispatcher.h"
#include "schedulers/policy.h"

namespace vpfs::proxy {

// What the status says of the stage, as copied by StatusReader. Its parts are some microseconds
// apart.
struct StatusSnapshot {
  struct Latencies {
    Duration p50 = {};
    Duration p99 = {};
    Duration max = {};
  };
  // Why the oldest request waits.
  struct Wait {
    std::optional<Duration> since;        // its arrival, where it is known
    std::string_view reason;              // a static text
    std::optional<Duration> may_go_in;    // where the wait is for a time
    std::optional<std::uint32_t> target;  // of the lane
  };
  struct Row {
    std::shared_ptr<const stage::VirtualPfsInfo> info;
    stage::Counters counters;
    StatusFields report;  // with one lane
    std::optional<Wait> wait;
    Latencies held;
    Latencies service;
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
    std::vector<LaneFlow> flows;  // with something queued or outstanding; with several lanes
  };
  struct Client {
    std::string name;
    std::size_t connections = 0;
    std::optional<std::size_t> allowance;
    std::uint64_t refused = 0;
  };

  std::vector<Row> rows;    // virtual PFSes that are there, by number: "default" first
  std::vector<Lane> lanes;  // at least one
  std::vector<Client> clients;
  std::uint64_t virtual_pfs_refused = 0;
  struct Retired {
    std::uint64_t count = 0;
    stage::Counters counters;
    Latencies held;
    Latencies service;
  } retired;
};

// Copies what the status says, a few rows at a time, so that no request waits for more than some
// microseconds; all that takes longer is done without the lock. Histograms are copied where they
// have changed since the last time.
class StatusReader {
 public:
  [[nodiscard]] StatusSnapshot read(Dispatcher& dispatcher, TimePoint now);

 private:
  struct Known {
    stage::VirtualPfsId id;
    std::uint64_t counts = 0;  // of both histograms
    StatusSnapshot::Latencies held;
    StatusSnapshot::Latencies service;
  };

  void read_lanes(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_rows(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_flows(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to) const;
  void read_latencies(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to);
  void read_clients(Dispatcher& dispatcher, TimePoint now, StatusSnapshot& to) const;

  std::vector<Known> known_;                   // by number
  std::vector<stage::VirtualPfsId> ids_;       // of the snapshot's rows
  std::vector<stage::Histograms> histograms_;  // copies, for a few rows at a time
};

}  // namespace vpfs::proxy
