#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/device_model.h"
#include "base/units.h"
#include "sim/proxies/coordinator/simulated_coordinator.h"
#include "stage/rules/address.h"

namespace vpfs::sim {

// Requests that came evenly from the end of the interval before.
struct RecordedInterval {
  Duration until = {};  // from the start of the application; above that of the one before
  std::uint64_t requests = 0;
};

// An application of a scenario, in the words of vpfs-load's configuration.
struct SimulatedApplication {
  enum class Arrivals : std::uint8_t { closed, even, random, recorded };
  struct Burst {
    Duration length = {};
    Duration interval = {};
  };

  std::string name;
  std::string jobid;  // the hint on every I/O
  std::uint32_t uid = 0;
  stage::Address client;        // of its nodes, for rules that ask for it
  std::uint64_t processes = 1;  // each with a file of its own
  // Requests of each process. In a closed loop each answer makes room for the next request. With
  // other arrivals they come at `rate`, however many are under way.
  std::uint64_t outstanding = 1;
  Arrivals arrivals = Arrivals::closed;
  Duration between = {};  // arrivals of one process, in the mean
  Bytes size = {kMiB};
  std::uint64_t read_percent = 0;
  bool random_places = false;
  Bytes file_size = {64 * kMiB};
  // Its files are on the servers from `first_server` on, `servers` of them; 0: all. Each file has
  // datafiles on so many of those; 0: all.
  std::uint64_t first_server = 0;
  std::uint64_t servers = 0;
  std::uint64_t datafiles = 0;
  Duration think = Duration::zero();  // from an answer to the next request in its place
  Duration start = Duration::zero();
  std::optional<Duration> stop;
  std::optional<Burst> burst;
  // For recorded arrivals: the path of a result of vpfs-load as in the file, the application in it,
  // and what its owner has read there. The processes take turns.
  std::string recording;
  std::string recorded_name;
  std::vector<RecordedInterval> recorded;
};

// What vpfs-sim runs: a file system of servers, each behind a proxy, and applications.
struct Scenario {
  // The configuration of vpfs-proxy: a path as in the file.
  std::string configuration;
  std::uint64_t servers = 1;
  DeviceSettings device;  // of each server
  Bytes strip_size = {64 * kKiB};
  Bytes flow_buffer_size = {256 * kKiB};
  Duration round_trip = std::chrono::microseconds(100);  // between a client and a server
  Duration duration = std::chrono::seconds(10);          // measured
  Duration warm_up = std::chrono::seconds(1);
  Duration interval = std::chrono::seconds(1);  // of the course over time
  std::uint64_t seed = 1;
  std::optional<CoordinatorSettings> coordinator;  // nothing: each server shares alone
  std::vector<SimulatedApplication> applications;
  // Parts of requests, each on a server, that are under way at a time: what a run keeps in memory.
  // It ends when there are more (WhatIf::problem()).
  static constexpr std::uint64_t kMostUnderWay = 10'000'000;
  std::uint64_t most_under_way = kMostUnderWay;

  [[nodiscard]] Duration run_length() const { return warm_up + duration; }
};

// Reads the schema of conf/sim/two-jobs.yaml and conf/sim/site.yaml. Meaningful only when `errors`
// stays empty.
[[nodiscard]] Scenario read_scenario(std::string_view text, ConfigErrors& errors);

}  // namespace vpfs::sim
