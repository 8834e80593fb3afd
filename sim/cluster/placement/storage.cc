#include "sim/cluster/placement/storage.h"

#include <array>

#include "base/check.h"

namespace vpfs::sim {

Storage::Storage(const Topology& topology, const StorageRates& rates)
    : topology_(topology),
      rates_(rates),
      servers_(rates.servers),
      replicas_(rates.replicas),
      first_(static_cast<LinkId>(topology.links().size())),
      first_server_(first_ + topology.nodes() * kNodeLinks),
      capacities_(topology.capacities()) {
  VPFS_ASSERT(servers_ > 0);
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    for (const BytesPerSecond each : {rates.read, rates.write, rates.memory}) {
      capacities_.push_back(each);
    }
  }
  for (std::uint32_t server = 0; server < servers_; ++server) {
    for (const BytesPerSecond each :
         {rates.server_read, rates.server_write, rates.memory, rates.front_end, rates.front_end,
          rates.back_end, rates.back_end}) {
      capacities_.push_back(each);
    }
  }
}

LinkId Storage::of(NodeId node, NodeLink link) const {
  VPFS_ASSERT(node < topology_.nodes());
  return first_ + node * kNodeLinks + static_cast<std::uint32_t>(link);
}

LinkId Storage::of(std::uint32_t server, ServerLink link) const {
  VPFS_ASSERT(server < servers_);
  return first_server_ + server * kServerLinks + static_cast<std::uint32_t>(link);
}

Storage::Part Storage::part(LinkId link) const {
  static constexpr std::array<std::string_view, kNodeLinks> kOfNode = {"reads", "writes", "memory"};
  static constexpr std::array<std::string_view, kServerLinks> kOfServer = {
      "reads", "writes", "memory", "front end out", "front end in", "back end out", "back end in"};
  VPFS_ASSERT(link >= first_ && link < capacities_.size());
  if (link >= first_server_) {
    const std::uint32_t number = link - first_server_;
    return {.owner = number / kServerLinks,
            .is_of_server = true,
            .name = kOfServer[number % kServerLinks]};
  }
  const std::uint32_t number = link - first_;
  return {.owner = number / kNodeLinks, .name = kOfNode[number % kNodeLinks]};
}

void Storage::read(NodeId device, NodeId reader, bool from_memory, Random& random,
                   std::vector<LinkId>& route) const {
  route.push_back(of(device, from_memory ? NodeLink::memory : NodeLink::read));
  topology_.route(device, reader, random, route);
}

void Storage::write(NodeId writer, NodeId device, bool into_memory, Random& random,
                    std::vector<LinkId>& route) const {
  topology_.route(writer, device, random, route);
  route.push_back(of(device, into_memory ? NodeLink::memory : NodeLink::write));
}

void Storage::fetch(std::uint32_t server, bool from_memory, std::vector<LinkId>& route) const {
  route.push_back(of(server, from_memory ? ServerLink::memory : ServerLink::read));
  route.push_back(of(server, ServerLink::front_out));
}

void Storage::store(std::uint32_t server, bool into_memory, std::vector<LinkId>& route) const {
  route.push_back(of(server, ServerLink::front_in));
  route.push_back(of(server, into_memory ? ServerLink::memory : ServerLink::write));
}

void Storage::replicate(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& route) const {
  route.push_back(of(from, ServerLink::back_out));
  route.push_back(of(to, ServerLink::back_in));
  route.push_back(of(to, ServerLink::write));
}

}  // namespace vpfs::sim
