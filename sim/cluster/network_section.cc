#include "sim/cluster/network_section.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "sim/cluster/given_section.h"
#include "sim/cluster/network/topologies.h"
#include "sim/cluster/words.h"

namespace vpfs::sim {
namespace {

constexpr std::uint64_t kMostOfAKind = kMostLinks;

std::uint64_t read_number(ConfigReader& reader, const char* key) {
  std::uint64_t number = 1;
  reader.require(key);
  reader.get(key, &number, 1, kMostOfAKind);
  return number;
}

LinkRates read_rates(ConfigReader& reader, bool has_switches, bool has_groups) {
  LinkRates rates = {.node = kLeastRate, .local = {}};
  const auto read = [&reader](const char* key, BytesPerSecond* rate) {
    reader.get(key, rate, kLeastRate, {LinkRates::kMost});
  };
  reader.require("link_rate");
  read("link_rate", &rates.node);
  rates.local = rates.node;
  if (has_switches) read("switch_rate", &rates.local);
  rates.global = rates.local;
  if (has_groups) read("group_rate", &rates.global);
  return rates;
}

MadeTopology make_torus_of(ConfigReader& reader, ClusterNetwork& network) {
  reader.require("size");
  ConfigReader size = reader.child("size");
  const std::uint64_t x = read_number(size, "x");
  const std::uint64_t y = read_number(size, "y");
  const std::uint64_t z = read_number(size, "z");
  network.description = fmt::format("torus {}x{}x{}", x, y, z);
  return make_torus({.x = x, .y = y, .z = z}, read_rates(reader, true, false));
}

MadeTopology make_fat_tree_of(ConfigReader& reader, ClusterNetwork& network) {
  const std::uint64_t ports = read_number(reader, "ports");
  const std::uint64_t levels = read_number(reader, "levels");
  network.description = fmt::format("fat tree {}:{}", ports, levels);
  return make_fat_tree({.ports = ports, .levels = levels}, read_rates(reader, true, false));
}

MadeTopology make_dragonfly_of(ConfigReader& reader, ClusterNetwork& network) {
  const std::uint64_t nodes = read_number(reader, "nodes_per_router");
  const std::uint64_t routers = read_number(reader, "routers_per_group");
  const std::uint64_t globals = read_number(reader, "globals_per_router");
  network.description = fmt::format("dragonfly ({},{},{})", nodes, routers, globals);
  return make_dragonfly({.nodes = nodes, .routers = routers, .globals = globals},
                        read_rates(reader, true, true));
}

MadeTopology make_switch_of(ConfigReader& reader, ClusterNetwork& network) {
  const std::uint64_t nodes = read_number(reader, "nodes");
  network.description = "switch";
  return make_single_switch(nodes, read_rates(reader, false, false).node);
}

MadeTopology make_given_of(ConfigReader& reader, ClusterNetwork& network) {
  GivenNetwork given = read_given_network(reader);
  network.description = "given links";
  network.names = std::move(given.names);
  if (!reader.flawless()) return fail("");
  return make_given_links(given.links);
}

MadeTopology make(ConfigReader& reader, ClusterNetwork& network) {
  std::string topology;
  reader.require("topology");
  if (!reader.choose("topology", &topology,
                     {"torus", "fat_tree", "dragonfly", "switch", "links"})) {
    // Which keys belong here is not known.
    for (const std::string& key : reader.keys()) (void)reader.has(key);
    return fail("");
  }
  if (topology == "torus") return make_torus_of(reader, network);
  if (topology == "fat_tree") return make_fat_tree_of(reader, network);
  if (topology == "dragonfly") return make_dragonfly_of(reader, network);
  if (topology == "switch") return make_switch_of(reader, network);
  return make_given_of(reader, network);
}

void read_classes(ConfigReader& reader, ClassPolicy& policy) {
  constexpr std::uint64_t kMostPart = 1000;
  read_word(reader, "sharing", &policy.sharing, kSharingWords);
  read_word(reader, "classes", &policy.kind, kClassWords);
  if (policy.kind != ClassPolicy::Kind::apportioned) {
    if (reader.has("parts")) reader.report("parts", "is for classes: apportioned");
    return;
  }
  reader.require("parts");
  ConfigReader parts = reader.child("parts");
  for (const auto& [key, part] :
       {std::pair("communication", &policy.communication), std::pair("storage", &policy.storage)}) {
    std::uint64_t number = 1;
    parts.require(key);
    parts.get(key, &number, 1, kMostPart);
    *part = static_cast<std::uint32_t>(number);
  }
}

}  // namespace

std::string ClusterNetwork::name_of(VertexId vertex) const {
  if (vertex < names.size()) return names[vertex];
  const NodeId nodes = topology->nodes();
  return vertex < nodes ? fmt::format("node {}", vertex) : fmt::format("switch {}", vertex - nodes);
}

ClusterNetwork read_network(ConfigReader reader) {
  ClusterNetwork network;
  MadeTopology made = make(reader, network);
  if (made) {
    network.topology = std::move(*made);
  } else if (reader.flawless()) {
    // Otherwise the errors about its keys say more.
    reader.report("topology", made.error().message);
  }
  read_classes(reader, network.policy);
  return network;
}

}  // namespace vpfs::sim
