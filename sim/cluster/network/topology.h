#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/pipe.h"
#include "base/result.h"
#include "base/units.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

using NodeId = std::uint32_t;
using LinkId = std::uint32_t;
// A node or a switch: nodes are 0 ... nodes() - 1, switches have the numbers that follow.
using VertexId = std::uint32_t;

// Links have one direction: a cable is two of them.
struct NetworkLink {
  VertexId from = 0;
  VertexId to = 0;
  BytesPerSecond capacity;

  bool operator==(const NetworkLink&) const = default;
};

// Capacities of a topology's links, by what they connect.
struct LinkRates {
  static constexpr std::uint64_t kMost = Pipe::kMostPerSecond;

  BytesPerSecond node;         // a node and its switch
  BytesPerSecond local;        // two switches
  BytesPerSecond global = {};  // two groups; only a dragonfly has such links
};

// The links of an interconnect, and the way through it from each node to each other.
class Topology {
 public:
  virtual ~Topology() = default;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] NodeId nodes() const { return nodes_; }
  [[nodiscard]] VertexId vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<NetworkLink>& links() const { return links_; }
  // The capacities of all links, in their order.
  [[nodiscard]] std::vector<BytesPerSecond> capacities() const;

  // Appends the links from one node to another, in the order in which they are passed. None lead
  // from a node to itself. Only Valiant routing draws from `random`. REQUIRES: both < nodes().
  virtual void route(NodeId from, NodeId to, Random& random, std::vector<LinkId>& links) const = 0;

 protected:
  Topology(std::uint64_t nodes, std::uint64_t switches, std::uint64_t links);

  // Links get the numbers 0, 1, 2, ...
  LinkId add_link(VertexId from, VertexId to, BytesPerSecond capacity);
  // A link to the switch and one back. REQUIRES: the links of nodes 0, 1, 2, ... are added first.
  void attach(NodeId node, VertexId to_switch, BytesPerSecond rate);
  [[nodiscard]] static constexpr LinkId injection(NodeId node) { return 2 * node; }
  [[nodiscard]] static constexpr LinkId ejection(NodeId node) { return 2 * node + 1; }

 private:
  NodeId nodes_;
  VertexId vertices_;
  std::vector<NetworkLink> links_;
};

// What topologies may have at most, links of both directions counted.
inline constexpr std::uint64_t kMostLinks = std::uint64_t{1} << 22;

// An error names the number or the rate that is impossible.
[[nodiscard]] Result<void> check_number(std::string_view what, std::uint64_t number,
                                        std::uint64_t least, std::uint64_t most);
[[nodiscard]] Result<void> check_rate(std::string_view what, BytesPerSecond rate);
[[nodiscard]] Result<void> first_error(std::initializer_list<Result<void>> checks);

}  // namespace vpfs::sim
