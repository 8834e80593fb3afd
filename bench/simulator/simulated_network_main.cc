// The cost of a flow in the simulator's network: its start, its end, and what both change. A closed
// loop: whenever a flow ends, another starts between two random nodes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/command_line.h"
#include "base/system_clock.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

struct NetworkBenchSettings {
  std::vector<std::uint32_t> flows = {100, 300, 1000, 2000};  // at any time
  std::vector<std::string> policies = {"NP", "FP", "BA"};
  std::uint64_t ends = 2'000;  // that are measured
  std::uint64_t seed = 1;
};

constexpr LinkRates kRates = {
    .node = {1'250'000'000}, .local = {1'250'000'000}, .global = {1'250'000'000}};
constexpr std::uint64_t kLeastSize = 64 * kKiB;
constexpr std::uint64_t kMostSize = kMiB;

struct NamedTopology {
  const char* name;
  MadeTopology topology;
};

struct NamedPolicy {
  const char* name;
  ClassPolicy policy;
};

class Loop {
 public:
  Loop(const Topology& topology, ClassPolicy policy, std::uint64_t seed)
      : topology_(topology), random_(seed), network_(engine_, topology.capacities(), policy) {}

  void start() {
    const auto node = [this] { return static_cast<NodeId>(random_.below(topology_.nodes())); };
    const NodeId from = node();
    NodeId to = node();
    while (to == from) to = node();
    route_.clear();
    topology_.route(from, to, random_, route_);
    network_.start(
        {.route = route_,
         .size = {kLeastSize + random_.below(kMostSize - kLeastSize)},
         .traffic_class = random_.chance(50) ? TrafficClass::communication : TrafficClass::storage},
        [this] {
          ++ended_;
          start();
        });
  }
  void run(std::uint64_t ends) {
    for (const std::uint64_t last = ended_ + ends; ended_ < last;) VPFS_ASSERT(engine_.step());
  }

  [[nodiscard]] Duration virtual_time() const { return engine_.now() - TimePoint(); }

 private:
  const Topology& topology_;
  Random random_;
  Engine engine_;
  Network network_;
  std::vector<LinkId> route_;
  std::uint64_t ended_ = 0;
};

nlohmann::json measure(const NamedTopology& topology, const NamedPolicy& policy,
                       std::uint32_t flows, const NetworkBenchSettings& settings) {
  Loop loop(**topology.topology, policy.policy, settings.seed);
  for (std::uint32_t i = 0; i < flows; ++i) loop.start();
  loop.run(flows);  // until starts are spread over time
  const SystemClock clock;
  const Duration virtual_begin = loop.virtual_time();
  const TimePoint begin = clock.now();
  loop.run(settings.ends);
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  // A start belongs to each end.
  const double changes = 2.0 * static_cast<double>(settings.ends) / seconds;
  return {{"topology", topology.name},
          {"policy", policy.name},
          {"flows", flows},
          {"changes_per_second", changes},
          {"virtual_ms", (loop.virtual_time() - virtual_begin) / std::chrono::milliseconds(1)}};
}

int bench(int argc, char** argv) {
  NetworkBenchSettings settings;
  std::string json_path;
  OptionParser app("Starts and ends of flows per second in the simulator's network.");
  app.add_option("--flows", settings.flows, "Flows at any time").separated_by_commas();
  app.add_option("--policies", settings.policies, "NP, FP, BA (50:50)").separated_by_commas();
  app.add_option("--ends", settings.ends, "Flows that end in each measurement");
  app.add_option("--seed", settings.seed, "Seed of the routes and sizes");
  app.add_option("--json", json_path, "Where to write the result");
  if (const auto code = app.parse(argc, argv)) return *code;

  const std::vector<NamedPolicy> policies = {{"NP", ClassPolicy::none()},
                                             {"FP", ClassPolicy::priority()},
                                             {"BA", ClassPolicy::apportioned(50, 50)}};
  std::vector<NamedTopology> topologies;
  topologies.push_back({"dragonfly (4,6,4)", make_dragonfly({4, 6, 4}, kRates)});
  topologies.push_back({"fat tree 8:3", make_fat_tree({8, 3}, kRates)});
  topologies.push_back({"torus 8x8x8", make_torus({8, 8, 8}, kRates)});
  nlohmann::json rows = nlohmann::json::array();
  fmt::print("seed {}, {} ends, sizes {} ... {}, links {}, classes equally often, BA 50:50\n",
             settings.seed, settings.ends, to_string(Bytes{kLeastSize}),
             to_string(Bytes{kMostSize}), to_string(kRates.node));
  fmt::print("{:<18} {:<9} {:>6} {:>24}\n", "topology", "policy", "flows", "starts and ends per s");
  for (const NamedTopology& topology : topologies) {
    for (const NamedPolicy& policy : policies) {
      if (std::ranges::find(settings.policies, policy.name) == settings.policies.end()) continue;
      for (const std::uint32_t flows : settings.flows) {
        const nlohmann::json& row = rows.emplace_back(measure(topology, policy, flows, settings));
        fmt::print("{:<18} {:<9} {:>6} {:>24.0f}\n", topology.name, policy.name, flows,
                   row["changes_per_second"].get<double>());
        std::fflush(stdout);
      }
    }
  }
  if (!json_path.empty()) {
    std::ofstream(json_path) << nlohmann::json{
        {"seed", settings.seed},
        {"ends", settings.ends},
        {"rows", rows}}.dump(2);
  }
  return 0;
}

}  // namespace
}  // namespace vpfs::sim

int main(int argc, char** argv) {
  try {
    return vpfs::sim::bench(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
