#include "test/sim/cluster/network/fairness.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "sim/cluster/network/apportioned_filling.h"

namespace vpfs::sim {
namespace {

// What flows use of a link.
struct Load {
  std::array<Rate, kTrafficClasses> used;
  std::array<Rate, kTrafficClasses> fastest;
  std::uint64_t hops = 0;

  [[nodiscard]] Rate all() const { return used[0] + used[1]; }
};

std::size_t index_of(TrafficClass traffic_class) {
  return static_cast<std::size_t>(traffic_class);
}

std::vector<Load> loads(std::size_t links, const std::vector<AllottedFlow>& flows) {
  std::vector<Load> result(links);
  for (const AllottedFlow& flow : flows) {
    const std::size_t its_class = index_of(flow.traffic_class);
    for (const LinkId link : flow.route) {
      result[link].used[its_class] += flow.rate;
      result[link].fastest[its_class] = std::max(result[link].fastest[its_class], flow.rate);
      ++result[link].hops;
    }
  }
  return result;
}

using IsBottleneck = std::function<bool(Rate capacity, const Load& load, const AllottedFlow& flow)>;

// `slack`: of the widest link; for BA.
IsBottleneck bottleneck_of(const ClassPolicy& policy, Rate slack) {
  const auto is_full = [](Rate capacity, const Load& load) {
    return (capacity - load.all()).units < load.hops;
  };
  switch (policy.kind) {
    case ClassPolicy::Kind::none:
      return [is_full](Rate capacity, const Load& load, const AllottedFlow& flow) {
        return is_full(capacity, load) && flow.rate == std::max(load.fastest[0], load.fastest[1]);
      };
    case ClassPolicy::Kind::priority:
      return [is_full](Rate capacity, const Load& load, const AllottedFlow& flow) {
        Load seen = load;
        if (flow.traffic_class == TrafficClass::communication) seen.used[1] = {};
        return is_full(capacity, seen) && flow.rate == load.fastest[index_of(flow.traffic_class)];
      };
    case ClassPolicy::Kind::apportioned:
      break;
  }
  return [policy, slack](Rate capacity, const Load& load, const AllottedFlow& flow) {
    const std::size_t its_class = index_of(flow.traffic_class);
    const std::uint64_t part = its_class == 0 ? policy.communication : policy.storage;
    const std::uint64_t parts = std::uint64_t{policy.communication} + policy.storage;
    const std::uint64_t share = capacity.units / parts * part;
    const std::uint64_t rounding = (load.hops + 1) * slack.units + load.hops + parts;
    return (capacity - load.all()).units < rounding &&
           flow.rate.units + rounding >= load.fastest[its_class].units &&
           load.used[its_class].units + rounding >= share;
  };
}

// Progressive filling of some flows; writes their rates. Returns what is left of the rooms.
std::vector<Rate> fill(std::vector<Rate> room, const std::vector<std::size_t>& which,
                       const std::vector<AllottedFlow>& flows, std::vector<Rate>& rates) {
  std::vector<bool> is_waiting(flows.size());
  std::vector<std::uint64_t> hops(room.size());
  for (const std::size_t flow : which) {
    is_waiting[flow] = true;
    for (const LinkId link : flows[flow].route) ++hops[link];
  }
  const auto freeze = [&](std::size_t flow, std::uint64_t level) {
    is_waiting[flow] = false;
    rates[flow] = {level};
    for (const LinkId link : flows[flow].route) {
      room[link].units -= level;
      --hops[link];
    }
  };
  for (;;) {
    std::uint64_t level = ~std::uint64_t{0};
    std::size_t lowest_link = room.size();
    for (std::size_t link = 0; link < room.size(); ++link) {
      if (hops[link] == 0 || room[link].units / hops[link] >= level) continue;
      level = room[link].units / hops[link];
      lowest_link = link;
    }
    std::optional<std::size_t> lowest_cap;
    for (const std::size_t flow : which) {
      const auto& cap = flows[flow].cap;
      if (!is_waiting[flow] || !cap || Rate::of(*cap).units >= level) continue;
      level = Rate::of(*cap).units;
      lowest_cap = flow;
    }
    if (lowest_cap) {
      freeze(*lowest_cap, level);
    } else if (lowest_link < room.size()) {
      for (const std::size_t flow : which) {
        const auto& route = flows[flow].route;
        if (is_waiting[flow] && std::ranges::count(route, lowest_link) > 0) freeze(flow, level);
      }
    } else {
      return room;
    }
  }
}

// BA, as apportioned_filling.h describes it.
void fill_in_turn(const std::vector<Rate>& capacities, const ClassPolicy& policy,
                  const std::vector<AllottedFlow>& flows, std::vector<Rate>& rates) {
  std::array<std::vector<std::size_t>, kTrafficClasses> of_class;
  std::array<std::vector<std::uint64_t>, kTrafficClasses> hops;
  for (auto& each : hops) each.resize(capacities.size());
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    const std::size_t its_class = index_of(flows[flow].traffic_class);
    of_class[its_class].push_back(flow);
    for (const LinkId link : flows[flow].route) ++hops[its_class][link];
  }
  const std::size_t links = capacities.size();
  std::vector<std::size_t> all(flows.size());
  std::iota(all.begin(), all.end(), 0);
  fill(capacities, all, flows, rates);
  std::vector<Rate> used(links);
  for (const std::size_t flow : of_class[1]) {
    for (const LinkId link : flows[flow].route) used[link] += rates[flow];
  }
  std::vector<Rate> share(links);
  std::vector<Rate> room(links);
  for (std::size_t link = 0; link < links; ++link) {
    const std::uint64_t parts = policy.communication + policy.storage;
    const std::uint64_t rest = capacities[link].units % parts;
    share[link].units =
        capacities[link].units / parts * policy.communication + rest * policy.communication / parts;
    room[link] = std::max(share[link], capacities[link] - used[link]);
  }
  for (std::size_t round = 0; round < ApportionedFilling::kMostRounds; ++round) {
    const std::vector<Rate> left = fill(room, of_class[0], flows, rates);
    std::vector<Rate> for_storage(links);
    for (std::size_t link = 0; link < links; ++link) {
      used[link] = room[link] - left[link];
      for_storage[link] = std::max(capacities[link] - share[link], capacities[link] - used[link]);
    }
    const std::vector<Rate> left_by_storage = fill(for_storage, of_class[1], flows, rates);
    bool is_settled = true;
    for (std::size_t link = 0; link < links; ++link) {
      const Rate storage = for_storage[link] - left_by_storage[link];
      const Rate next = std::max(share[link], capacities[link] - storage);
      const Rate slack = ApportionedFilling::slack_of(capacities[link]);
      const bool is_full = left[link].units < hops[0][link];
      if (used[link] <= next + slack && !(is_full && next > room[link] + slack)) continue;
      is_settled = false;
      room[link] = next;
    }
    if (is_settled) break;
  }
  for (std::size_t link = 0; link < links; ++link) room[link] = capacities[link] - used[link];
  fill(room, of_class[1], flows, rates);
}

// Each flow's lowest part of its links, as Sharing::equal defines it.
std::vector<Rate> equal_rates(const std::vector<BytesPerSecond>& capacities,
                              const ClassPolicy& policy, const std::vector<AllottedFlow>& flows) {
  std::vector<std::array<std::uint64_t, kTrafficClasses>> uses(capacities.size());
  for (const AllottedFlow& flow : flows) {
    for (const LinkId link : flow.route) ++uses[link][index_of(flow.traffic_class)];
  }
  std::vector<Rate> rates;
  for (const AllottedFlow& flow : flows) {
    std::uint64_t lowest = flow.cap ? Rate::of(*flow.cap).units : ~std::uint64_t{0};
    for (const LinkId link : flow.route) {
      const std::uint64_t units = Rate::of(capacities[link]).units;
      const bool is_storage = flow.traffic_class == TrafficClass::storage;
      const std::uint64_t all = uses[link][0] + uses[link][1];
      const std::uint64_t own = uses[link][index_of(flow.traffic_class)];
      std::uint64_t part = units / all;
      if (policy.kind == ClassPolicy::Kind::priority && !is_storage) part = units / own;
      if (policy.kind == ClassPolicy::Kind::apportioned && own < all) {
        const std::uint64_t its = is_storage ? policy.storage : policy.communication;
        part = units * its / (policy.communication + policy.storage) / own;
      }
      lowest = std::min(lowest, part);
    }
    rates.push_back({lowest});
  }
  return rates;
}

}  // namespace

std::string what_is_over_capacity(const std::vector<BytesPerSecond>& capacities,
                                  const std::vector<AllottedFlow>& flows) {
  const std::vector<Load> load = loads(capacities.size(), flows);
  for (std::size_t link = 0; link < load.size(); ++link) {
    if (load[link].all() <= Rate::of(capacities[link])) continue;
    return fmt::format("link {} has {} units of {}", link, load[link].all().units,
                       Rate::of(capacities[link]).units);
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].cap && flows[i].rate > Rate::of(*flows[i].cap)) {
      return fmt::format("flow {} is above its cap", i);
    }
  }
  return {};
}

std::string why_unfair(const std::vector<BytesPerSecond>& capacities, const ClassPolicy& policy,
                       const std::vector<AllottedFlow>& flows) {
  if (std::string over = what_is_over_capacity(capacities, flows); !over.empty()) return over;
  const std::vector<Load> load = loads(capacities.size(), flows);
  const Rate slack =
      policy.kind == ClassPolicy::Kind::apportioned
          ? ApportionedFilling::slack_of(Rate::of(*std::ranges::max_element(capacities)))
          : Rate{};
  const IsBottleneck is_bottleneck = bottleneck_of(policy, slack);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const AllottedFlow& flow = flows[i];
    if (flow.cap && flow.rate + slack >= Rate::of(*flow.cap)) continue;
    const bool has_one = std::ranges::any_of(flow.route, [&](LinkId link) {
      return is_bottleneck(Rate::of(capacities[link]), load[link], flow);
    });
    if (!has_one) return fmt::format("flow {} with {} units has no bottleneck", i, flow.rate.units);
  }
  return {};
}

std::vector<Rate> rates_from_scratch(const std::vector<BytesPerSecond>& capacities,
                                     const ClassPolicy& policy,
                                     const std::vector<AllottedFlow>& flows) {
  if (policy.sharing == Sharing::equal) return equal_rates(capacities, policy, flows);
  std::vector<Rate> rates(flows.size());
  std::vector<Rate> room;
  for (const BytesPerSecond capacity : capacities) room.push_back(Rate::of(capacity));
  if (policy.kind == ClassPolicy::Kind::apportioned) {
    fill_in_turn(room, policy, flows, rates);
    return rates;
  }
  std::array<std::vector<std::size_t>, kTrafficClasses> turns;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const bool is_first = policy.kind == ClassPolicy::Kind::none ||
                          flows[i].traffic_class == TrafficClass::communication;
    turns[is_first ? 0 : 1].push_back(i);
  }
  room = fill(std::move(room), turns[0], flows, rates);
  fill(std::move(room), turns[1], flows, rates);
  return rates;
}

}  // namespace vpfs::sim
