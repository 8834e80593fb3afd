#include "sim/cluster/placement/batch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {

Batch::Batch(ClusterMachine machine, Settings settings, std::vector<Job> jobs)
    : machine_(machine),
      settings_(std::move(settings)),
      jobs_(std::move(jobs)),
      random_(settings_.seed),
      is_free_(machine.topology.nodes(), true),
      free_(machine.topology.nodes()),
      running_(jobs_.size()),
      outcomes_(jobs_.size()) {
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    VPFS_ASSERT(jobs_[job].tasks() <= machine_.topology.nodes());
    machine_.engine.at(TimePoint() + jobs_[job].arrival, [this, job] {
      outcomes_[job].arrived = machine_.engine.now();
      queue_.push_back(job);
      start_what_fits();
    });
  }
}

Batch::~Batch() = default;

void Batch::start_what_fits() {
  while (!queue_.empty() && jobs_[queue_.front()].tasks() <= free_) {
    const std::size_t job = queue_.front();
    queue_.pop_front();
    start(job);
  }
  if (settings_.backfills && queue_.size() > 1) backfill();
}

// EASY backfilling: whoever ends before the first job of the queue can start, or leaves enough
// nodes for it then, does not delay it.
void Batch::backfill() {
  Shadow first = shadow();
  for (std::size_t i = 1; i < queue_.size() && free_ > 0;) {
    const std::size_t job = queue_[i];
    const bool ends_before = machine_.engine.now() + jobs_[job].wall_time <= first.time;
    if (jobs_[job].tasks() > free_ || (!ends_before && jobs_[job].tasks() > first.spare)) {
      ++i;
      continue;
    }
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    start(job);
    first = shadow();
  }
}

Batch::Shadow Batch::shadow() const {
  const std::uint32_t wanted = jobs_[queue_.front()].tasks();
  std::uint32_t free = free_;
  TimePoint time = machine_.engine.now();
  for (const auto& [end, job] : expected_ends_) {
    if (free >= wanted) break;
    free += static_cast<std::uint32_t>(running_[job].nodes.size());
    time = end;
  }
  return {.time = time, .spare = free - wanted};
}

void Batch::start(std::size_t job) {
  Running& running = running_[job];
  const std::uint32_t tasks = jobs_[job].tasks();
  DataPlace place;
  if (knows_data_first()) place = place_of(job, {});
  running.nodes = take_nodes(tasks, place);
  if (!knows_data_first()) place = place_of(job, running.nodes);
  running.expected_end = machine_.engine.now() + jobs_[job].wall_time;
  expected_ends_.emplace(running.expected_end, job);
  outcomes_[job].started = machine_.engine.now();
  running.application = make(job, std::move(place));
  running.application->start();
}

// Its last call comes from inside the application, which is destroyed later.
std::unique_ptr<PlacedApplication> Batch::make(std::size_t job, DataPlace place) {
  const auto done = [this, job] {
    machine_.engine.at(machine_.engine.now(), [this, job] { end(job); });
  };
  const std::uint64_t seed = settings_.seed * jobs_.size() + job;
  Tally* const tally = &outcomes_[job].tally;
  if (const auto& blocks = jobs_[job].blocks) {
    return std::make_unique<BlockApplication>(
        machine_,
        BlockApplication::Settings{.profile = *blocks,
                                   .nodes = running_[job].nodes,
                                   .data = std::move(place),
                                   .rules = settings_.rules,
                                   .seed = seed,
                                   .tally = tally},
        done);
  }
  return std::make_unique<MarkovApplication>(
      machine_,
      MarkovApplication::Settings{.profile = jobs_[job].profile,
                                  .nodes = running_[job].nodes,
                                  .data = std::move(place),
                                  .is_staged = settings_.is_staged,
                                  .seed = seed,
                                  .tally = tally},
      done);
}

void Batch::end(std::size_t job) {
  Running& running = running_[job];
  outcomes_[job].ended = machine_.engine.now();
  for (const NodeId node : running.nodes) is_free_[node] = true;
  free_ += static_cast<std::uint32_t>(running.nodes.size());
  expected_ends_.erase({running.expected_end, job});
  running = {};
  ++ended_;
  start_what_fits();
}

std::vector<NodeId> Batch::take_nodes(std::uint32_t count, const DataPlace& place) {
  VPFS_ASSERT(count <= free_);
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < is_free_.size(); ++node) {
    if (is_free_[node]) nodes.push_back(node);
  }
  if (settings_.nodes == Nodes::random) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::swap(nodes[i], nodes[i + random_.below(nodes.size() - i)]);
    }
  } else if (settings_.nodes == Nodes::near_data) {
    order_by_distance(nodes, count, place);
  }
  nodes.resize(count);
  for (const NodeId node : nodes) is_free_[node] = false;
  free_ -= count;
  return nodes;
}

void Batch::order_by_distance(std::vector<NodeId>& nodes, std::uint32_t count,
                              const DataPlace& place) {
  if (!distances_) distances_.emplace(machine_.topology);
  if (place.devices.empty()) return distances_->order_around_best(nodes, count);
  distances_->order_from(place.devices, nodes);
}

DataPlace Batch::place_of(std::size_t job, const std::vector<NodeId>& nodes) {
  DataPlace place{.access = settings_.access};
  const auto& blocks = jobs_[job].blocks;
  const std::uint32_t devices = blocks ? blocks->devices : jobs_[job].tasks();
  if (settings_.data == Data::central) {
    place.servers = machine_.storage.servers();
  } else if (settings_.data == Data::cache) {
    place.devices = nodes;
    place.access = Access::local;
  } else if (settings_.data == Data::internal) {
    place.devices = nodes;
    if (devices < nodes.size()) {
      place.devices.clear();
      for (const std::uint32_t i : draw_permutation(jobs_[job].tasks(), random_)) {
        if (place.devices.size() < devices) place.devices.push_back(nodes[i]);
      }
    }
  } else if (settings_.data == Data::shared) {
    place.devices = settings_.devices;
  } else {
    place.devices = draw_others(devices, nodes);
  }
  return place;
}

// So many nodes that are none of an application's, at random. One that has nearly all nodes has
// fewer.
std::vector<NodeId> Batch::draw_others(std::uint32_t count, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> found;
  for (const std::uint32_t node : draw_permutation(machine_.topology.nodes(), random_)) {
    if (found.size() == count) break;
    if (std::ranges::find(nodes, node) == nodes.end()) found.push_back(node);
  }
  return found.empty() ? nodes : found;
}

}  // namespace vpfs::sim
