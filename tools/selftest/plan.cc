#include "tools/selftest/plan.h"

#include <algorithm>

namespace vpfs::selftest {
namespace {

constexpr std::uint64_t kDeepest = 64;
constexpr std::int64_t kOfShares = 3;  // these get three times the time of a depth
// The rest is for files that are written before they are read.
constexpr std::int64_t kMeasuredPercent = 80;

void add_depths(const PlanInput& input, Path path, std::vector<Phase>& phases) {
  for (const bool reads : {true, false}) {
    for (std::uint64_t depth = 1; depth <= kDeepest; depth *= 2) {
      phases.push_back({.purpose = Purpose::depth,
                        .path = path,
                        .reads = reads,
                        .size = input.size,
                        .in_flight = depth,
                        .weights = {},
                        .length = {}});
    }
  }
}

void add_costs(const PlanInput& input, Path path, std::vector<Phase>& phases) {
  const Bytes middle = {std::max(2 * kSmall.count, input.size.count / 16)};
  for (const Bytes size : {kSmall, middle}) {
    for (const bool reads : {true, false}) {
      phases.push_back({.purpose = Purpose::cost,
                        .path = path,
                        .reads = reads,
                        .size = size,
                        .in_flight = kCostDepth,
                        .weights = {},
                        .length = {}});
    }
  }
}

// In turns, so that a server that changes meanwhile changes both.
void add_path_costs(const PlanInput& input, std::vector<Phase>& phases) {
  for (const bool small : {true, false}) {
    for (int round = 0; round < 2; ++round) {
      for (const Path path : {Path::direct, Path::proxy}) {
        phases.push_back({.purpose = Purpose::path_cost,
                          .path = path,
                          .reads = true,
                          .size = small ? kSmall : input.size,
                          .in_flight = small ? std::uint64_t{1} : std::uint64_t{16},
                          .weights = {},
                          .length = {}});
      }
    }
  }
}

void add_shares(const PlanInput& input, std::vector<Phase>& phases) {
  const auto add = [&](Purpose purpose, std::vector<unsigned> weights) {
    phases.push_back({.purpose = purpose,
                      .path = Path::proxy,
                      .reads = false,
                      .size = input.size,
                      .in_flight = std::min(std::max<std::uint64_t>(2 * input.proxy_depth, 16),
                                            input.most_in_flight),
                      .weights = std::move(weights),
                      .length = {}});
  };
  if (input.weights) {
    add(Purpose::weights, {2, 1});
    add(Purpose::weights, {4, 1});
  }
  if (input.limits) add(Purpose::limit, {});
}

std::int64_t part_of(const Phase& phase) {
  const bool is_long = phase.purpose == Purpose::weights || phase.purpose == Purpose::limit;
  return is_long ? kOfShares : 1;
}

}  // namespace

std::vector<Phase> plan(const PlanInput& input) {
  std::vector<Phase> phases = {{.purpose = Purpose::check,
                                .path = Path::proxy,
                                .reads = false,
                                .size = kSmall,
                                .in_flight = 1,
                                .weights = {},
                                .length = {}}};
  if (!input.shared) {
    const Path path = input.direct ? Path::direct : Path::proxy;
    add_depths(input, path, phases);
    add_costs(input, path, phases);
    if (input.direct) add_path_costs(input, phases);
  }
  add_shares(input, phases);
  std::int64_t parts = 0;
  for (const Phase& each : phases) parts += part_of(each);
  const Duration one = input.time * kMeasuredPercent / 100 / parts;
  for (Phase& each : phases) each.length = one * part_of(each);
  return phases;
}

}  // namespace vpfs::selftest
