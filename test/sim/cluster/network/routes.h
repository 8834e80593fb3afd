#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {

inline constexpr BytesPerSecond kNodeRate = {1'250'000'000};
inline constexpr BytesPerSecond kLocalRate = {2'500'000'000};
inline constexpr BytesPerSecond kGlobalRate = {5'000'000'000};
inline constexpr LinkRates kRates = {.node = kNodeRate, .local = kLocalRate, .global = kGlobalRate};

// Fails the test if the topology is impossible.
[[nodiscard]] std::unique_ptr<const Topology> made(MadeTopology topology);

[[nodiscard]] std::vector<LinkId> route_of(const Topology& topology, NodeId from, NodeId to,
                                           std::uint64_t seed = 1);
// The vertices that the route passes, both nodes included.
[[nodiscard]] std::vector<VertexId> vertices_of(const Topology& topology, NodeId from, NodeId to,
                                                std::uint64_t seed = 1);

// Expects every route to lead over links that join from one node to the other, and never over the
// same link twice.
void expect_sound_routes(const Topology& topology);

// The largest number of routes over one link, if each node sends to destination[node].
[[nodiscard]] std::uint32_t most_on_a_link(const Topology& topology,
                                           const std::vector<NodeId>& destinations);

}  // namespace vpfs::sim
