#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

class Dragonfly final : public Topology {
 public:
  Dragonfly(DragonflySize size, std::uint64_t groups, std::uint64_t links, LinkRates rates)
      : Topology(groups * size.routers * size.nodes, groups * size.routers, links),
        nodes_of_router_(static_cast<NodeId>(size.nodes)),
        routers_of_group_(static_cast<VertexId>(size.routers)),
        globals_of_router_(static_cast<VertexId>(size.globals)),
        groups_(static_cast<VertexId>(groups)) {
    for (NodeId node = 0; node < nodes(); ++node) {
      attach(node, vertex_of(node / nodes_of_router_), rates.node);
    }
    add_local_links(rates.local);
    add_global_links(rates.global);
  }

  void route(NodeId from, NodeId to, Random& random, std::vector<LinkId>& links) const override {
    if (from == to) return;
    links.push_back(injection(from));
    VertexId at = from / nodes_of_router_;
    const VertexId end = to / nodes_of_router_;
    const VertexId first = at / routers_of_group_;
    const VertexId last = end / routers_of_group_;
    if (first != last) {
      if (groups_ > 2) at = go_to_group(other_than(first, last, random), at, links);
      at = go_to_group(last, at, links);
    }
    go_to_router(end, at, links);
    links.push_back(ejection(to));
  }

 private:
  // Routers have the numbers 0, 1, ... here, group by group.
  [[nodiscard]] VertexId vertex_of(VertexId router) const { return nodes() + router; }
  [[nodiscard]] VertexId ports_of_group() const { return groups_ - 1; }

  void add_local_links(BytesPerSecond rate) {
    first_local_ = static_cast<LinkId>(links().size());
    for (VertexId router = 0; router < groups_ * routers_of_group_; ++router) {
      const VertexId first = router / routers_of_group_ * routers_of_group_;
      for (VertexId other = first; other < first + routers_of_group_; ++other) {
        if (other != router) add_link(vertex_of(router), vertex_of(other), rate);
      }
    }
  }

  void add_global_links(BytesPerSecond rate) {
    first_global_ = static_cast<LinkId>(links().size());
    for (VertexId group = 0; group < groups_; ++group) {
      for (VertexId port = 0; port < ports_of_group(); ++port) {
        const VertexId other = (group + port + 1) % groups_;
        add_link(vertex_of(router_to(other, group)), vertex_of(router_to(group, other)), rate);
      }
    }
  }

  // The global port of a group that leads to another.
  [[nodiscard]] VertexId port_to(VertexId other, VertexId group) const {
    return (other + groups_ - group - 1) % groups_;
  }
  [[nodiscard]] VertexId router_to(VertexId other, VertexId group) const {
    return group * routers_of_group_ + port_to(other, group) / globals_of_router_;
  }

  // A group that is neither of two different ones, all equally likely.
  [[nodiscard]] VertexId other_than(VertexId one, VertexId two, Random& random) const {
    auto group = static_cast<VertexId>(random.below(groups_ - 2));
    if (group >= std::min(one, two)) ++group;
    if (group >= std::max(one, two)) ++group;
    return group;
  }

  // Both return where the way ends. REQUIRES: the group is not the router's.
  VertexId go_to_group(VertexId group, VertexId router, std::vector<LinkId>& links) const {
    const VertexId here = router / routers_of_group_;
    go_to_router(router_to(group, here), router, links);
    links.push_back(first_global_ + here * ports_of_group() + port_to(group, here));
    return router_to(here, group);
  }
  // REQUIRES: both are of the same group.
  void go_to_router(VertexId to, VertexId from, std::vector<LinkId>& links) const {
    if (to == from) return;
    const VertexId place = to % routers_of_group_;
    links.push_back(first_local_ + from * (routers_of_group_ - 1) + place -
                    (place > from % routers_of_group_ ? 1 : 0));
  }

  NodeId nodes_of_router_;
  VertexId routers_of_group_;
  VertexId globals_of_router_;
  VertexId groups_;
  LinkId first_local_ = 0;
  LinkId first_global_ = 0;
};

}  // namespace

MadeTopology make_dragonfly(DragonflySize size, LinkRates rates) {
  // So far that no product of the numbers below overflows.
  constexpr std::uint64_t kMost = 1 << 12;
  const Result<void> possible = first_error(
      {check_number("p, the nodes of a dragonfly's router,", size.nodes, 1, kMost),
       check_number("a, the routers of a dragonfly's group,", size.routers, 1, kMost),
       check_number("h, the global links of a dragonfly's router,", size.globals, 1, kMost),
       check_rate("the rate of a node's links", rates.node),
       check_rate("the rate of links within a group", rates.local),
       check_rate("the rate of links between groups", rates.global)});
  VPFS_TRY(possible);
  const std::uint64_t groups = size.routers * size.globals + 1;
  const std::uint64_t links =
      groups * size.routers * (2 * size.nodes + size.routers - 1 + size.globals);
  if (links > kMostLinks) {
    return fail(fmt::format("a dragonfly ({}, {}, {}) has {} links, more than {}", size.nodes,
                            size.routers, size.globals, links, kMostLinks));
  }
  return std::make_unique<const Dragonfly>(size, groups, links, rates);
}

}  // namespace vpfs::sim
