#include <array>
#include <memory>
#include <vector>

#include "base/result.h"
#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

constexpr std::size_t kDimensions = 3;
constexpr std::uint64_t kMostNodes = kMostLinks / (2 + 2 * kDimensions);

class Torus final : public Topology {
 public:
  Torus(TorusSize size, LinkRates rates)
      : Topology(size.x * size.y * size.z, size.x * size.y * size.z,
                 size.x * size.y * size.z * (2 + 2 * kDimensions)) {
    for (NodeId node = 0; node < nodes(); ++node) attach(node, switch_of(node), rates.node);
    NodeId stride = 1;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const std::uint64_t length = std::array{size.x, size.y, size.z}[d];
      dimensions_[d] = {.length = static_cast<NodeId>(length), .stride = stride};
      add_links_of(dimensions_[d], rates.local);
      stride *= dimensions_[d].length;
    }
  }

  void route(NodeId from, NodeId to, Random& /*random*/,
             std::vector<LinkId>& links) const override {
    if (from == to) return;
    links.push_back(injection(from));
    NodeId at = from;
    for (const Dimension& dimension : dimensions_) {
      const NodeId end = dimension.place_of(to);
      const NodeId up = (end + dimension.length - dimension.place_of(at)) % dimension.length;
      const bool goes_up = 2 * up <= dimension.length;
      for (NodeId hops = goes_up ? up : dimension.length - up; hops > 0; --hops) {
        links.push_back((goes_up ? dimension.first_up : dimension.first_down) + at);
        at = goes_up ? dimension.next(at) : dimension.previous(at);
      }
    }
    links.push_back(ejection(to));
  }

 private:
  struct Dimension {
    NodeId length = 1;
    NodeId stride = 1;      // between the numbers of neighbours
    LinkId first_up = 0;    // from switch 0 to the next one; the others' links follow
    LinkId first_down = 0;  // to the previous one

    [[nodiscard]] NodeId place_of(NodeId node) const { return node / stride % length; }
    [[nodiscard]] NodeId next(NodeId node) const {
      return place_of(node) + 1 < length ? node + stride : node - stride * (length - 1);
    }
    [[nodiscard]] NodeId previous(NodeId node) const {
      return place_of(node) > 0 ? node - stride : node + stride * (length - 1);
    }
  };

  [[nodiscard]] VertexId switch_of(NodeId node) const { return nodes() + node; }

  void add_links_of(Dimension& dimension, BytesPerSecond rate) {
    if (dimension.length == 1) return;
    dimension.first_up = static_cast<LinkId>(links().size());
    for (NodeId node = 0; node < nodes(); ++node) {
      add_link(switch_of(node), switch_of(dimension.next(node)), rate);
    }
    if (dimension.length == 2) return;  // both directions lead the same way; routes go up
    dimension.first_down = static_cast<LinkId>(links().size());
    for (NodeId node = 0; node < nodes(); ++node) {
      add_link(switch_of(node), switch_of(dimension.previous(node)), rate);
    }
  }

  std::array<Dimension, kDimensions> dimensions_;
};

}  // namespace

MadeTopology make_torus(TorusSize size, LinkRates rates) {
  Result<void> possible = first_error({check_number("x of a torus", size.x, 1, kMostNodes),
                                       check_number("y of a torus", size.y, 1, kMostNodes),
                                       check_number("z of a torus", size.z, 1, kMostNodes),
                                       check_rate("the rate of a node's links", rates.node),
                                       check_rate("the rate of switches' links", rates.local)});
  // No product of two overflows.
  if (possible) {
    possible = check_number("nodes of a torus, x * y,", size.x * size.y, 1, kMostNodes);
  }
  if (possible) {
    possible =
        check_number("nodes of a torus, x * y * z,", size.x * size.y * size.z, 1, kMostNodes);
  }
  VPFS_TRY(possible);
  return std::make_unique<const Torus>(size, rates);
}

}  // namespace vpfs::sim
