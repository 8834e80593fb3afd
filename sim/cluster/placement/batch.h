#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/cluster/placement/application.h"
#include "sim/cluster/placement/block_application.h"
#include "sim/cluster/placement/distances.h"
#include "sim/cluster/placement/placed_application.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// A batch system: applications wait in a queue until it has nodes for them, and run there.
class Batch {
 public:
  enum class Nodes : std::uint8_t {
    sequential,  // the free ones with the lowest numbers
    random,      // any free ones
    // Those from which data are near: if the data are on devices that are drawn before, the ones
    // with the shortest ways to these, and else the ones with the shortest ways among each other.
    near_data,
  };
  // Where the data of an application are.
  enum class Data : std::uint8_t {
    internal,  // on devices of its own nodes
    external,  // on devices of other nodes
    cache,     // on its own nodes, each task's at its own
    central,   // on the central servers
    shared,    // on the devices of Settings::devices, whoever has their nodes
  };
  struct Settings {
    Nodes nodes = Nodes::sequential;
    // A later application may go first if that does not delay the first one of the queue, as far as
    // the wall times say that users ask for.
    bool backfills = false;
    Data data = Data::internal;
    std::vector<NodeId> devices;  // of Data::shared; at least one
    Access access = Access::disperse;
    bool is_staged = false;  // in from the central servers and out again, unless data are there
    std::uint64_t seed = 1;
    BlockRules rules;  // of applications of blocks
  };
  struct Job {
    Profile profile;
    std::optional<BlockProfile> blocks;  // instead of the profile
    Duration arrival = {};
    Duration wall_time = {};  // that its user asks for; only backfilling looks at it

    [[nodiscard]] std::uint32_t tasks() const { return blocks ? blocks->tasks : profile.tasks; }
  };
  struct Outcome {
    TimePoint arrived;
    TimePoint started;
    TimePoint ended;
    Tally tally;
  };

  // REQUIRES: no job has more tasks than there are nodes.
  Batch(ClusterMachine machine, Settings settings, std::vector<Job> jobs);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  [[nodiscard]] bool is_done() const { return ended_ == jobs_.size(); }
  [[nodiscard]] std::size_t ended() const { return ended_; }
  // By job, in their order. REQUIRES: is_done().
  [[nodiscard]] const std::vector<Outcome>& outcomes() const { return outcomes_; }

 private:
  struct Running {
    std::unique_ptr<PlacedApplication> application;
    std::vector<NodeId> nodes;
    TimePoint expected_end;
  };

  // When the first job of the queue can start, as far as wall times say, and how many nodes are
  // left for others then.
  struct Shadow {
    TimePoint time;
    std::uint32_t spare = 0;
  };

  void start_what_fits();
  void backfill();
  [[nodiscard]] Shadow shadow() const;
  void start(std::size_t job);
  void end(std::size_t job);
  [[nodiscard]] std::unique_ptr<PlacedApplication> make(std::size_t job, DataPlace place);
  [[nodiscard]] std::vector<NodeId> take_nodes(std::uint32_t count, const DataPlace& place);
  void order_by_distance(std::vector<NodeId>& nodes, std::uint32_t count, const DataPlace& place);
  [[nodiscard]] bool knows_data_first() const {
    return settings_.nodes == Nodes::near_data && settings_.data == Data::external;
  }
  [[nodiscard]] DataPlace place_of(std::size_t job, const std::vector<NodeId>& nodes);
  [[nodiscard]] std::vector<NodeId> draw_others(std::uint32_t count,
                                                const std::vector<NodeId>& nodes);

  ClusterMachine machine_;
  Settings settings_;
  std::vector<Job> jobs_;
  Random random_;
  std::vector<bool> is_free_;  // by node
  std::uint32_t free_ = 0;
  std::optional<Distances> distances_;  // for Nodes::near_data
  std::deque<std::size_t> queue_;
  std::vector<Running> running_;                               // by job
  std::set<std::pair<TimePoint, std::size_t>> expected_ends_;  // of the jobs that run
  std::vector<Outcome> outcomes_;
  std::size_t ended_ = 0;
};

}  // namespace vpfs::sim
