#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

// A switch of a level has a position with levels - 1 digits of base k. Going up by port u from
// level l, or down by port u to it, makes digit l of the position u. Node (d[n-1], ..., d[0]) is
// below the lowest switch at (d[n-1], ..., d[1]), at port d[0].
class FatTree final : public Topology {
 public:
  FatTree(std::uint64_t ports, std::uint64_t levels, std::uint64_t nodes, LinkRates rates)
      : Topology(nodes, levels * (nodes / ports), 2 * levels * nodes),
        ports_(static_cast<NodeId>(ports)) {
    for (NodeId digit = 1; digit < nodes; digit *= ports_) digits_.push_back(digit);
    const auto count = static_cast<NodeId>(nodes);
    for (NodeId node = 0; node < count; ++node)
      attach(node, switch_at(0, node / ports_), rates.node);
    for (std::size_t level = 0; level + 1 < levels; ++level) {
      for (NodeId position = 0; position < count / ports_; ++position) {
        for (NodeId port = 0; port < ports_; ++port) {
          const VertexId lower = switch_at(level, position);
          const VertexId upper = switch_at(level + 1, with_digit(position, level, port));
          add_link(lower, upper, rates.local);
          add_link(upper, lower, rates.local);
        }
      }
    }
  }

  void route(NodeId from, NodeId to, Random& /*random*/,
             std::vector<LinkId>& links) const override {
    if (from == to) return;
    links.push_back(injection(from));
    NodeId position = from / ports_;
    std::size_t level = 0;
    for (; !is_above(level, position, to); ++level) {
      const NodeId port = digit_of(to, level);
      links.push_back(up(level, position, port));
      position = with_digit(position, level, port);
    }
    while (level > 0) {
      --level;
      const NodeId lower = with_digit(position, level, digit_of(to, level + 1));
      links.push_back(up(level, lower, digit_of(position, level)) + 1);
      position = lower;
    }
    links.push_back(ejection(to));
  }

 private:
  [[nodiscard]] NodeId digit_of(NodeId number, std::size_t digit) const {
    return number / digits_[digit] % ports_;
  }
  [[nodiscard]] NodeId with_digit(NodeId number, std::size_t digit, NodeId value) const {
    return number + value * digits_[digit] - digit_of(number, digit) * digits_[digit];
  }
  [[nodiscard]] VertexId switch_at(std::size_t level, NodeId position) const {
    return nodes() + static_cast<VertexId>(level) * (nodes() / ports_) + position;
  }
  // Whether ways down lead from the switch to the node: digits from `level` on are the node's.
  [[nodiscard]] bool is_above(std::size_t level, NodeId position, NodeId node) const {
    return position / digits_[level] == node / ports_ / digits_[level];
  }
  // The link up from a switch; the one down beside it follows.
  [[nodiscard]] LinkId up(std::size_t level, NodeId position, NodeId port) const {
    return 2 * (static_cast<LinkId>(level + 1) * nodes() + position * ports_ + port);
  }

  NodeId ports_;
  std::vector<NodeId> digits_;  // k^0, k^1, ..., k^(n-1)
};

}  // namespace

MadeTopology make_fat_tree(FatTreeSize size, LinkRates rates) {
  // Trees of one port are lines of switches with one node.
  constexpr std::uint64_t kMostNodes = kMostLinks / 2;
  const Result<void> possible =
      first_error({check_number("ports of a fat tree", size.ports, 2, kMostNodes),
                   check_number("levels of a fat tree", size.levels, 1, 64),
                   check_rate("the rate of a node's links", rates.node),
                   check_rate("the rate of switches' links", rates.local)});
  VPFS_TRY(possible);
  std::uint64_t nodes = 1;
  for (std::uint64_t level = 0; level < size.levels; ++level) {
    nodes *= size.ports;
    if (nodes * 2 * size.levels > kMostLinks) {
      return fail(fmt::format("a {}:{} fat tree has more than {} links", size.ports, size.levels,
                              kMostLinks));
    }
  }
  return std::make_unique<const FatTree>(size.ports, size.levels, nodes, rates);
}

}  // namespace vpfs::sim
