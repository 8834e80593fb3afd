#include "sim/cluster/cluster.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/wide.h"
#include "sim/engine/random.h"

namespace vpfs::sim {
namespace {

// A stream of random numbers for arrivals and numbers of each application. The batch system draws
// from another one.
constexpr std::uint64_t kArrivals = std::uint64_t{1} << 32;

}  // namespace

Cluster::Cluster(const ClusterScenario& scenario)
    : scenario_(scenario),
      storage_(*scenario.network.topology, scenario.storage),
      network_(engine_, storage_.capacities(), scenario.network.policy),
      batch_({engine_, network_, *scenario.network.topology, storage_}, scenario.batch,
             make_jobs()) {}

std::vector<Batch::Job> Cluster::make_jobs() {
  std::vector<Batch::Job> jobs;
  for (std::size_t i = 0; i < scenario_.applications.size(); ++i) {
    const ClusterApplication& application = scenario_.applications[i];
    Random random(scenario_.seed, kArrivals + i);
    Duration arrival = application.start;
    for (std::uint64_t copy = 0; copy < application.count; ++copy) {
      names_.push_back(application.name_of(copy));
      profiles_.push_back(application.draw(random));
      jobs.push_back(
          {.profile = profiles_.back(), .arrival = arrival, .wall_time = application.wall_time});
      arrival += application.at_random ? random.exponential(application.every) : application.every;
    }
  }
  return jobs;
}

bool Cluster::run(std::uint64_t events) {
  for (std::uint64_t i = 0; i < events && !is_done(); ++i) {
    if (!engine_.step(TimePoint() + kLongest)) return false;
    ++events_;
  }
  return true;
}

std::string Cluster::name_of(LinkId link) const {
  const ClusterNetwork& network = scenario_.network;
  const std::vector<NetworkLink>& links = network.topology->links();
  if (link < links.size()) {
    return fmt::format("{} > {}", network.name_of(links[link].from),
                       network.name_of(links[link].to));
  }
  const Storage::Part part = storage_.part(link);
  return part.is_of_server ? fmt::format("server {} {}", part.owner, part.name)
                           : fmt::format("{} {}", network.name_of(part.owner), part.name);
}

std::vector<ClusterLinkResult> Cluster::links() const {
  const std::vector<BytesPerSecond>& rates = storage_.capacities();
  std::vector<LinkId> used;
  for (LinkId link = 0; link < rates.size(); ++link) {
    if (network_.carried(link).count > 0) used.push_back(link);
  }
  std::ranges::sort(used, [&](LinkId one, LinkId other) {
    const Wide its = Wide{network_.carried(one).count} * rates[other].count;
    const Wide others = Wide{network_.carried(other).count} * rates[one].count;
    return its != others ? its > others : one < other;
  });
  std::vector<ClusterLinkResult> result;
  result.reserve(used.size());
  for (const LinkId link : used) {
    result.push_back(
        {.name = name_of(link), .rate = rates[link], .carried = network_.carried(link)});
  }
  return result;
}

ClusterResult Cluster::result() const {
  VPFS_ASSERT(is_done());
  ClusterResult result{.events = events_, .unsettled = network_.unsettled()};
  TimePoint first = kNever;
  TimePoint last = TimePoint::min();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Batch::Outcome& outcome = batch_.outcomes()[i];
    const Profile& profile = profiles_[i];
    result.applications.push_back({.name = names_[i],
                                   .tasks = profile.tasks,
                                   .arrived = outcome.arrived,
                                   .started = outcome.started,
                                   .ended = outcome.ended,
                                   .tally = outcome.tally});
    first = std::min(first, outcome.arrived);
    last = std::max(last, outcome.ended);
  }
  result.makespan = last - first;
  result.links = links();
  return result;
}

}  // namespace vpfs::sim
