#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

// Entries in the table of routes: 4 bytes for each node and vertex.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 26;

class Given final : public Topology {
 public:
  explicit Given(const GivenLinks& given)
      : Topology(given.nodes, given.switches, given.links.size()),
        next_(given.nodes * vertices(), kNone) {
    for (const NetworkLink& link : given.links) add_link(link.from, link.to, link.capacity);
    sort_by_end();
    for (NodeId node = 0; node < nodes(); ++node) find_ways_to(node);
  }

  // A node that has no way to another: {from, to}.
  [[nodiscard]] std::optional<std::pair<NodeId, NodeId>> unreachable() const {
    for (NodeId to = 0; to < nodes(); ++to) {
      for (NodeId from = 0; from < nodes(); ++from) {
        if (from != to && next_link(from, to) == kNone) return std::pair(from, to);
      }
    }
    return std::nullopt;
  }

  void route(NodeId from, NodeId to, Random& /*random*/, std::vector<LinkId>& out) const override {
    for (VertexId at = from; at != to; at = links()[out.back()].to) {
      out.push_back(next_link(at, to));
    }
  }

 private:
  static constexpr LinkId kNone = std::numeric_limits<LinkId>::max();

  [[nodiscard]] LinkId next_link(VertexId at, NodeId to) const {
    return next_[std::size_t{to} * vertices() + at];
  }

  void sort_by_end() {
    first_to_.assign(vertices() + 1, 0);
    for (const NetworkLink& link : links()) ++first_to_[link.to + 1];
    for (VertexId i = 0; i < vertices(); ++i) first_to_[i + 1] += first_to_[i];
    by_end_.resize(links().size());
    std::vector<LinkId> place(first_to_.begin(), first_to_.end());
    for (LinkId link = 0; link < by_end_.size(); ++link) by_end_[place[links()[link].to]++] = link;
  }

  // Breadth first, against the direction of the links.
  void find_ways_to(NodeId node) {
    const auto next = std::span(next_).subspan(std::size_t{node} * vertices(), vertices());
    std::vector<std::uint32_t> distance(vertices(), kNone);
    std::vector<VertexId> queue = {node};
    distance[node] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const VertexId at = queue[i];
      for (LinkId place = first_to_[at]; place < first_to_[at + 1]; ++place) {
        const LinkId link = by_end_[place];
        const VertexId from = links()[link].from;
        if (distance[from] == kNone) {
          distance[from] = distance[at] + 1;
          queue.push_back(from);
        }
        if (distance[from] == distance[at] + 1) next[from] = std::min(next[from], link);
      }
    }
  }

  std::vector<LinkId> by_end_;    // links by the vertex to which they lead
  std::vector<LinkId> first_to_;  // of by_end_, for each vertex
  std::vector<LinkId> next_;      // from each vertex, on the way to each node
};

Result<void> check_link(std::size_t number, const NetworkLink& link, std::uint64_t vertices) {
  for (const VertexId end : {link.from, link.to}) {
    if (end < vertices) continue;
    return fail(fmt::format("link {} ends at {}, but nodes and switches are 0 ... {}", number, end,
                            vertices - 1));
  }
  if (link.from == link.to) {
    return fail(fmt::format("link {} leads from {} to itself", number, link.from));
  }
  return check_rate(fmt::format("the rate of link {}", number), link.capacity);
}

}  // namespace

MadeTopology make_given_links(const GivenLinks& given) {
  const Result<void> possible =
      first_error({check_number("nodes", given.nodes, 1, kMostLinks),
                   check_number("switches", given.switches, 0, kMostLinks),
                   check_number("links", given.links.size(), 0, kMostLinks)});
  VPFS_TRY(possible);
  const std::uint64_t vertices = given.nodes + given.switches;
  if (given.nodes * vertices > kMostEntries) {
    return fail(fmt::format("{} nodes times {} nodes and switches are more than {} routes",
                            given.nodes, vertices, kMostEntries));
  }
  for (std::size_t i = 0; i < given.links.size(); ++i) {
    VPFS_TRY(check_link(i, given.links[i], vertices));
  }
  auto topology = std::make_unique<const Given>(given);
  if (const auto pair = topology->unreachable()) {
    return fail(fmt::format("no way leads from node {} to node {}", pair->first, pair->second));
  }
  return topology;
}

}  // namespace vpfs::sim
