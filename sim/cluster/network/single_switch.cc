#include <memory>
#include <vector>

#include "base/result.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

class SingleSwitch final : public Topology {
 public:
  SingleSwitch(std::uint64_t nodes, BytesPerSecond rate) : Topology(nodes, 1, 2 * nodes) {
    for (NodeId node = 0; node < nodes; ++node) attach(node, static_cast<VertexId>(nodes), rate);
  }

  void route(NodeId from, NodeId to, Random& /*random*/,
             std::vector<LinkId>& links) const override {
    if (from == to) return;
    links.push_back(injection(from));
    links.push_back(ejection(to));
  }
};

}  // namespace

MadeTopology make_single_switch(std::uint64_t nodes, BytesPerSecond rate) {
  const Result<void> possible =
      first_error({check_number("nodes of a switch", nodes, 1, kMostLinks / 2),
                   check_rate("the rate of a node's links", rate)});
  VPFS_TRY(possible);
  return std::make_unique<const SingleSwitch>(nodes, rate);
}

}  // namespace vpfs::sim
