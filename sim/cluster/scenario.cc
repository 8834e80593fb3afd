#include "sim/cluster/scenario.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "sim/cluster/words.h"

namespace vpfs::sim {
namespace {

constexpr std::uint64_t kMostDataServers = 10'000;

void read_rate(ConfigReader& reader, const char* key, BytesPerSecond* rate) {
  reader.get(key, rate, kLeastRate, {LinkRates::kMost});
}

std::optional<NodeId> find_node(const std::string& text, const ClusterNetwork& network) {
  const NodeId nodes = network.topology->nodes();
  if (!network.names.empty()) {
    const auto end = network.names.begin() + static_cast<std::ptrdiff_t>(nodes);
    const auto found = std::find(network.names.begin(), end, text);
    if (found == end) return std::nullopt;
    return static_cast<NodeId>(found - network.names.begin());
  }
  NodeId node = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  const bool is_number = error == std::errc() && rest == text.data() + text.size();
  return is_number && node < nodes ? std::optional(node) : std::nullopt;
}

// A list of nodes, or how many, which are spread evenly over all.
void read_devices(ConfigReader& reader, const ClusterNetwork& network, Batch::Settings& batch) {
  if (batch.data != Batch::Data::shared) {
    if (reader.has("devices")) reader.report("devices", "is for place: shared");
    return;
  }
  reader.require("devices");
  if (network.topology == nullptr) return (void)reader.has("devices");
  const std::uint64_t nodes = network.topology->nodes();
  if (reader.is_scalar("devices")) {
    std::uint64_t count = 1;
    reader.get("devices", &count, 1, nodes);
    for (std::uint64_t i = 0; i < count; ++i) {
      batch.devices.push_back(static_cast<NodeId>(i * nodes / count));
    }
    return;
  }
  std::vector<std::string> names;
  if (!reader.get("devices", &names)) return;
  std::set<NodeId> known;
  for (const std::string& name : names) {
    const std::optional<NodeId> node = find_node(name, network);
    if (!node) {
      reader.report("devices", fmt::format("there is no node '{}'", name));
    } else if (!known.insert(*node).second) {
      reader.report("devices", fmt::format("'{}' is listed twice", name));
    } else {
      batch.devices.push_back(*node);
    }
  }
}

void read_storage(ConfigReader reader, ClusterScenario& scenario, ClusterDefaults& defaults) {
  Batch::Settings& batch = scenario.batch;
  read_word(reader, "place", &batch.data, kDataWords);
  read_devices(reader, scenario.network, batch);
  read_word(reader, "access", &batch.access, kAccessWords);
  if (batch.data == Batch::Data::cache && reader.has("access") && batch.access != Access::local) {
    reader.report("access", "is always local with place: cache");
  }
  const bool is_central = batch.data == Batch::Data::central;
  if (is_central && reader.has("access")) reader.report("access", "is not for place: central");
  read_rate(reader, "read", &scenario.storage.read);
  read_rate(reader, "write", &scenario.storage.write);
  read_rate(reader, "memory", &scenario.storage.memory);
  reader.get("staged", &batch.is_staged);
  if (batch.is_staged && is_central) {
    reader.report("staged", "is not for place: central");
  }
  read_percent(reader, "memory_percent", &defaults.memory_percent);
  defaults.has_remote = !is_central && batch.data != Batch::Data::cache;
  defaults.needs_others = batch.data == Batch::Data::external;
  read_remote_percent(reader, defaults.has_remote, &defaults.remote_percent);
}

void read_san(ConfigReader& cluster, ClusterScenario& scenario) {
  const bool is_used = scenario.batch.is_staged || scenario.batch.data == Batch::Data::central;
  if (is_used) cluster.require("san");
  ConfigReader reader = cluster.child("san");
  std::uint64_t servers = 1;
  reader.require("servers");
  reader.get("servers", &servers, 1, kMostDataServers);
  scenario.storage.servers = static_cast<std::uint32_t>(servers);
  std::uint64_t replicas = std::min<std::uint64_t>(scenario.storage.replicas, servers - 1);
  reader.get("replicas", &replicas, 0, servers - 1);
  scenario.storage.replicas = static_cast<std::uint32_t>(replicas);
  read_rate(reader, "read", &scenario.storage.server_read);
  read_rate(reader, "write", &scenario.storage.server_write);
  read_rate(reader, "front_end", &scenario.storage.front_end);
  read_rate(reader, "back_end", &scenario.storage.back_end);
}

void read_batch(ConfigReader reader, Batch::Settings& batch) {
  read_word(reader, "queue", &batch.backfills, kQueueWords);
  read_word(reader, "nodes", &batch.nodes, kNodeWords);
}

}  // namespace

bool is_cluster_scenario(std::string_view text) {
  ConfigErrors ignored("");
  ConfigReader reader(text, ignored);
  return reader.has("cluster");
}

ClusterScenario read_cluster_scenario(std::string_view text, ConfigErrors& errors) {
  ClusterScenario scenario;
  ClusterDefaults defaults;
  ConfigReader reader(text, errors);
  reader.require("cluster");
  {
    ConfigReader cluster = reader.child("cluster");
    cluster.require("network");
    if (cluster.has("network")) scenario.network = read_network(cluster.child("network"));
    read_storage(cluster.child("storage"), scenario, defaults);
    read_san(cluster, scenario);
    read_batch(cluster.child("batch"), scenario.batch);
  }
  reader.get("seed", &scenario.seed, 0, ~std::uint64_t{0});
  scenario.batch.seed = scenario.seed;
  if (scenario.network.topology != nullptr) defaults.nodes = scenario.network.topology->nodes();
  defaults.backfills = scenario.batch.backfills;
  scenario.applications = read_cluster_applications(reader, defaults);
  return scenario;
}

}  // namespace vpfs::sim
