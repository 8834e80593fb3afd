// Runs configurations of the study of where to place data (script/bench placement).
//
// Reads a list of cases as JSON from the standard input, and writes a list of results. A case is
// one application on nodes 0, 1, 2, ..., or a workload for a batch system.

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/network/topologies.h"
#include "sim/cluster/placement/batch.h"
#include "sim/cluster/placement/block_application.h"

namespace vpfs::sim {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error(what);
}

template <typename Choice>
Choice choose(const Json& value, std::initializer_list<std::pair<const char*, Choice>> choices) {
  for (const auto& [name, choice] : choices) {
    if (value == name) return choice;
  }
  refuse(fmt::format("{} is none of the choices", value.dump()));
}

std::unique_ptr<const Topology> read_network(const Json& network) {
  const auto size = network.at("size").get<std::vector<std::uint64_t>>();
  const BytesPerSecond rate{network.at("link_rate").get<std::uint64_t>()};
  const LinkRates rates{.node = rate, .local = rate, .global = rate};
  const auto number = [&](std::size_t i) { return size.at(i); };
  const std::string kind = network.at("kind");
  MadeTopology made = [&]() -> MadeTopology {
    if (kind == "dragonfly") return make_dragonfly({number(0), number(1), number(2)}, rates);
    if (kind == "fat tree") return make_fat_tree({number(0), number(1)}, rates);
    if (kind == "torus") return make_torus({number(0), number(1), number(2)}, rates);
    if (kind == "switch") return make_single_switch(number(0), rate);
    refuse("there is no network " + kind);
  }();
  if (!made) refuse(made.error().message);
  return std::move(*made);
}

ClassPolicy read_priority(const Json& priority) {
  if (priority == "NP") return ClassPolicy::none();
  if (priority == "FP") return ClassPolicy::priority();
  // [x, y]: x for communication.
  return ClassPolicy::apportioned(priority.at(0).get<std::uint32_t>(),
                                  priority.at(1).get<std::uint32_t>());
}

ClassPolicy read_policy(const Json& from) {
  ClassPolicy policy = read_priority(from.at("priority"));
  policy.sharing = choose<Sharing>(
      from.at("rates"),
      {{"max-min", Sharing::max_min}, {"equal-share", Sharing::equal}, {"study", Sharing::study}});
  return policy;
}

BlockRules read_rules(const Json& from) {
  return {.locality = choose<Locality>(from.at("locality"), {{"node", Locality::by_node},
                                                             {"share", Locality::by_share},
                                                             {"whole", Locality::whole}}),
          .has_trace_order = from.at("trace_order"),
          .has_free_nodes = from.at("free_nodes"),
          .messages_may_rise = from.at("messages_rise"),
          .hits_may_rise = from.at("hits_rise")};
}

BlockProfile read_profile(const Json& from) {
  BlockProfile profile;
  profile.tasks = from.at("tasks");
  profile.readers = from.at("readers");
  profile.writers = from.at("writers");
  profile.devices = from.at("devices");
  profile.next = from.at("next").get<std::array<BlockWeights, 4>>();
  profile.most_blocks = from.at("most_blocks");
  profile.compute_mean = std::chrono::microseconds(from.at("compute_us").get<std::int64_t>());
  profile.data = {from.at("data_bytes").get<std::uint64_t>()};
  profile.least_percent = from.at("least_percent");
  profile.largest_message = {from.at("message_bytes").get<std::uint64_t>()};
  profile.most_messages = from.at("most_messages");
  profile.memory_percent = from.at("memory_percent");
  profile.remote_percent = from.at("remote_percent");
  const auto is_part = [&](std::uint32_t number) { return number > 0 && number <= profile.tasks; };
  const bool has_rows = std::ranges::none_of(
      profile.next, [](const BlockWeights& row) { return row == BlockWeights{}; });
  const bool is_possible = profile.tasks > 0 && is_part(profile.readers) &&
                           is_part(profile.writers) && is_part(profile.devices) && has_rows &&
                           profile.compute_mean >= Duration::zero() && profile.least_percent > 0 &&
                           profile.least_percent <= 100 && profile.memory_percent <= 100 &&
                           profile.remote_percent <= 100;
  if (!is_possible) refuse("a profile that cannot be: " + from.dump());
  return profile;
}

Access read_access(const Json& access) {
  return choose<Access>(
      access,
      {{"disperse", Access::disperse}, {"affinity", Access::affinity}, {"local", Access::local}});
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Everything of a case but what runs.
struct PlacementCase {
  explicit PlacementCase(const Json& from)
      : topology(read_network(from.at("network"))),
        storage(*topology, {.servers = from.at("san").get<std::uint32_t>(),
                            .replicas = from.at("replicas").get<std::uint32_t>()}),
        network(engine, storage.capacities(), read_policy(from)) {}

  [[nodiscard]] ClusterMachine get() { return {engine, network, *topology, storage}; }

  std::unique_ptr<const Topology> topology;
  Storage storage;
  Engine engine;
  Network network;
};

// Devices are spread evenly over the application's nodes.
DataPlace read_place(const Json& from, std::uint32_t tasks, Access access) {
  DataPlace place{.access = access};
  if (const auto devices = from.value("stg", std::uint32_t{0}); devices > 0) {
    if (devices > tasks) refuse("more devices than tasks");
    for (std::uint32_t i = 0; i < devices; ++i) place.devices.push_back(i * tasks / devices);
  } else {
    place.servers = from.at("san");
  }
  return place;
}

Json run_one(const Json& from) {
  PlacementCase placement(from);
  Tally tally;
  BlockApplication::Settings settings{.profile = read_profile(from.at("profile")),
                                      .rules = read_rules(from.at("rules")),
                                      .seed = from.at("seed").get<std::uint64_t>(),
                                      .tally = &tally};
  const std::uint32_t tasks = settings.profile.tasks;
  if (tasks > placement.topology->nodes()) refuse("more tasks than nodes");
  for (NodeId node = 0; node < tasks; ++node) settings.nodes.push_back(node);
  settings.data = read_place(from, tasks, read_access(from.at("access")));
  std::optional<TimePoint> end;
  BlockApplication application(placement.get(), std::move(settings),
                               [&] { end = placement.engine.now(); });
  application.start();
  while (!end && placement.engine.step()) {
  }
  return {{"run_s", seconds(end.value() - TimePoint())},
          {"local_bytes", tally.local.count},
          {"remote_bytes", tally.remote.count},
          {"unsettled", placement.network.unsettled()}};
}

Json run_workload(const Json& from) {
  PlacementCase placement(from);
  const Json& batch = from.at("batch");
  const Batch::Settings settings{
      .nodes = choose<Batch::Nodes>(batch.at("nodes"), {{"sequential", Batch::Nodes::sequential},
                                                        {"random", Batch::Nodes::random},
                                                        {"near data", Batch::Nodes::near_data}}),
      .backfills = batch.at("backfills"),
      .data = choose<Batch::Data>(batch.at("data"), {{"internal", Batch::Data::internal},
                                                     {"external", Batch::Data::external},
                                                     {"cache", Batch::Data::cache},
                                                     {"central", Batch::Data::central}}),
      .access = read_access(from.at("access")),
      .seed = from.at("seed").get<std::uint64_t>(),
      .rules = read_rules(from.at("rules"))};
  std::vector<Batch::Job> jobs;
  for (const Json& each : from.at("jobs")) {
    jobs.push_back(
        {.blocks = read_profile(each),
         .arrival = std::chrono::microseconds(each.at("arrival_us").get<std::int64_t>()),
         .wall_time = std::chrono::microseconds(each.at("wall_us").get<std::int64_t>())});
    if (jobs.back().tasks() > placement.topology->nodes()) refuse("more tasks than nodes");
  }
  Batch run(placement.get(), settings, std::move(jobs));
  while (!run.is_done() && placement.engine.step()) {
  }
  Json rows = Json::array();
  for (const Batch::Outcome& each : run.outcomes()) {
    rows.push_back({{"wait_s", seconds(each.started - each.arrived)},
                    {"run_s", seconds(each.ended - each.started)}});
  }
  return {{"jobs", std::move(rows)}, {"unsettled", placement.network.unsettled()}};
}

}  // namespace
}  // namespace vpfs::sim

int main(int argc, char** argv) {
  vpfs::OptionParser app("Runs configurations of the study of where to place data");
  if (const auto code = app.parse(argc, argv)) return *code;
  try {
    const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
    vpfs::sim::Json results = vpfs::sim::Json::array();
    for (const vpfs::sim::Json& each : vpfs::sim::Json::parse(text)) {
      results.push_back(each.contains("jobs") ? vpfs::sim::run_workload(each)
                                              : vpfs::sim::run_one(each));
    }
    fmt::print("{}\n", results.dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-bench-placement: {}\n", error.what());
    return 1;
  }
}
