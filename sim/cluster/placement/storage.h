#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// What storage can do. Each device, memory and cable is a link of its own for each direction, so
// reads and writes of one device do not slow each other down.
struct StorageRates {
  BytesPerSecond read = {2'000'000'000};     // of a node's NVM
  BytesPerSecond write = {1'000'000'000};    // likewise
  BytesPerSecond memory = {10'000'000'000};  // of a node, for accesses that it answers
  // Central storage: I/O servers at a front-end switch of their own that all nodes reach, and at a
  // back-end switch for replicas. Their devices are as fast as the back end, so that cables are
  // what bounds them.
  std::uint32_t servers = 4;
  BytesPerSecond server_read = {5'000'000'000};   // of each server's device
  BytesPerSecond server_write = {5'000'000'000};  // likewise
  // A write is copied to so many other servers, the next ones. A read comes from all that have a
  // copy, an equal part from each.
  std::uint32_t replicas = 1;
  BytesPerSecond front_end = {1'250'000'000};  // of each server, each way
  BytesPerSecond back_end = {5'000'000'000};   // likewise
};

// The links of storage, behind those of the interconnect, and the ways through both.
class Storage {
 public:
  // The topology outlives it. REQUIRES: at least one server; no rate is zero.
  Storage(const Topology& topology, const StorageRates& rates);

  // The capacities of all links: those of the topology, then its own.
  [[nodiscard]] const std::vector<BytesPerSecond>& capacities() const { return capacities_; }
  [[nodiscard]] const StorageRates& rates() const { return rates_; }
  [[nodiscard]] std::uint32_t servers() const { return servers_; }
  // How many replicas each write among so many servers has: at most one on each other one.
  [[nodiscard]] std::uint32_t replicas(std::uint32_t servers) const {
    return std::min(replicas_, servers - 1);
  }

  // What a link of its own is: a part of a node, or of a central server. REQUIRES: the link is none
  // of the topology's.
  struct Part {
    std::uint32_t owner = 0;
    bool is_of_server = false;
    std::string_view name;
  };
  [[nodiscard]] Part part(LinkId link) const;

  // Append the links that data pass. From a node's device, or its memory, to another node (or the
  // same one), and back.
  void read(NodeId device, NodeId reader, bool from_memory, Random& random,
            std::vector<LinkId>& route) const;
  void write(NodeId writer, NodeId device, bool into_memory, Random& random,
             std::vector<LinkId>& route) const;
  // From a central server to a node, and back. Nodes reach the servers by a network of its own, so
  // no link of the interconnect is in these ways.
  void fetch(std::uint32_t server, bool from_memory, std::vector<LinkId>& route) const;
  void store(std::uint32_t server, bool into_memory, std::vector<LinkId>& route) const;
  // From one central server to another.
  void replicate(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& route) const;

 private:
  enum class NodeLink : std::uint8_t { read, write, memory };
  static constexpr auto kNodeLinks = static_cast<std::uint32_t>(NodeLink::memory) + 1;
  enum class ServerLink : std::uint8_t {
    read,
    write,
    memory,
    front_out,
    front_in,
    back_out,
    back_in
  };
  static constexpr auto kServerLinks = static_cast<std::uint32_t>(ServerLink::back_in) + 1;
  [[nodiscard]] LinkId of(NodeId node, NodeLink link) const;
  [[nodiscard]] LinkId of(std::uint32_t server, ServerLink link) const;

  const Topology& topology_;
  StorageRates rates_;
  std::uint32_t servers_;
  std::uint32_t replicas_;
  LinkId first_;         // of nodes
  LinkId first_server_;  // of servers
  std::vector<BytesPerSecond> capacities_;
};

}  // namespace vpfs::sim
