#include "sim/cluster/network/topology.h"

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::sim {

Topology::Topology(std::uint64_t nodes, std::uint64_t switches, std::uint64_t links)
    : nodes_(static_cast<NodeId>(nodes)), vertices_(static_cast<VertexId>(nodes + switches)) {
  VPFS_ASSERT(links <= kMostLinks);
  links_.reserve(links);
}

std::vector<BytesPerSecond> Topology::capacities() const {
  std::vector<BytesPerSecond> result;
  result.reserve(links_.size());
  for (const NetworkLink& link : links_) result.push_back(link.capacity);
  return result;
}

LinkId Topology::add_link(VertexId from, VertexId to, BytesPerSecond capacity) {
  links_.push_back({.from = from, .to = to, .capacity = capacity});
  return static_cast<LinkId>(links_.size() - 1);
}

void Topology::attach(NodeId node, VertexId to_switch, BytesPerSecond rate) {
  VPFS_DEBUG_ASSERT(links_.size() == injection(node));
  add_link(node, to_switch, rate);
  add_link(to_switch, node, rate);
}

Result<void> check_number(std::string_view what, std::uint64_t number, std::uint64_t least,
                          std::uint64_t most) {
  if (number >= least && number <= most) return {};
  return fail(fmt::format("{} must be {} ... {}, not {}", what, least, most, number));
}

Result<void> check_rate(std::string_view what, BytesPerSecond rate) {
  return check_number(what, rate.count, 1, LinkRates::kMost);
}

Result<void> first_error(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& check : checks) {
    if (!check) return check;
  }
  return {};
}

}  // namespace vpfs::sim
