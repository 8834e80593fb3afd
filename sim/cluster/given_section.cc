#include "sim/cluster/given_section.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/cluster/network_section.h"

namespace vpfs::sim {
namespace {

using Numbers = std::map<std::string, VertexId, std::less<>>;

void read_names(ConfigReader& reader, const char* key, GivenNetwork& network, Numbers& numbers) {
  std::vector<std::string> names;
  if (!reader.get(key, &names)) return;
  for (std::string& name : names) {
    if (!numbers.emplace(name, static_cast<VertexId>(network.names.size())).second) {
      reader.report(key, fmt::format("'{}' is listed twice", name));
    }
    network.names.push_back(std::move(name));
  }
}

std::optional<VertexId> find_end(ConfigReader& reader, const char* key, const std::string& name,
                                 const Numbers& numbers) {
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  reader.report(key, fmt::format("there is no node or switch '{}'", name));
  return std::nullopt;
}

// A cable with `between`, or a link of one direction with `from` and `to`.
void read_link(ConfigReader& reader, std::optional<BytesPerSecond> usual, const Numbers& numbers,
               std::vector<NetworkLink>& links) {
  BytesPerSecond rate = usual.value_or(kLeastRate);
  if (!usual) reader.require("rate");
  reader.get("rate", &rate, kLeastRate, {LinkRates::kMost});
  std::optional<VertexId> from;
  std::optional<VertexId> to;
  const bool is_cable = reader.has("between");
  const char* const last = is_cable ? "between" : "to";
  if (is_cable) {
    std::vector<std::string> ends;
    if (!reader.get("between", &ends)) return;
    if (ends.size() != 2) return reader.report("between", "must have two names");
    from = find_end(reader, "between", ends[0], numbers);
    to = find_end(reader, "between", ends[1], numbers);
    for (const char* const key : {"from", "to"}) {
      if (reader.has(key)) reader.report(key, "is not for a link with `between`");
    }
  } else {
    std::string name;
    reader.require("from");
    reader.require("to");
    if (reader.get("from", &name)) from = find_end(reader, "from", name, numbers);
    if (reader.get("to", &name)) to = find_end(reader, "to", name, numbers);
  }
  if (!from || !to) return;
  if (*from == *to) return reader.report(last, "leads to where it comes from");
  links.push_back({.from = *from, .to = *to, .capacity = rate});
  if (is_cable) links.push_back({.from = *to, .to = *from, .capacity = rate});
}

// Which vertices a way along the links, or against them, leads to from node 0.
std::vector<bool> reached(const GivenNetwork& network, bool along) {
  std::vector<std::vector<VertexId>> next(network.names.size());
  for (const NetworkLink& each : network.links.links) {
    next[along ? each.from : each.to].push_back(along ? each.to : each.from);
  }
  std::vector<bool> is_reached(next.size());
  std::vector<VertexId> queue = {0};
  is_reached[0] = true;
  while (!queue.empty()) {
    const VertexId at = queue.back();
    queue.pop_back();
    for (const VertexId each : next[at]) {
      if (is_reached[each]) continue;
      is_reached[each] = true;
      queue.push_back(each);
    }
  }
  return is_reached;
}

void check_ways(ConfigReader& reader, const GivenNetwork& network) {
  for (const bool along : {true, false}) {
    const std::vector<bool> is_reached = reached(network, along);
    for (NodeId node = 0; node < network.links.nodes; ++node) {
      if (is_reached[node]) continue;
      const std::string& first = network.names.front();
      const std::string& other = network.names[node];
      return reader.report("links", fmt::format("no way leads from {} to {}", along ? first : other,
                                                along ? other : first));
    }
  }
}

}  // namespace

GivenNetwork read_given_network(ConfigReader& reader) {
  GivenNetwork network;
  Numbers numbers;
  reader.require("nodes");
  reader.require("links");
  read_names(reader, "nodes", network, numbers);
  network.links.nodes = network.names.size();
  read_names(reader, "switches", network, numbers);
  network.links.switches = network.names.size() - network.links.nodes;
  std::optional<BytesPerSecond> usual;
  BytesPerSecond rate;
  if (reader.get("link_rate", &rate, kLeastRate, {LinkRates::kMost})) usual = rate;
  reader.for_each(
      "links", [&](ConfigReader& each) { read_link(each, usual, numbers, network.links.links); });
  if (!reader.flawless()) return network;
  if (network.links.nodes < 2) reader.report("nodes", "must be at least two");
  if (reader.flawless()) check_ways(reader, network);
  return network;
}

}  // namespace vpfs::sim
