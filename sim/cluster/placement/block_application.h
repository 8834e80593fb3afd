#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/cluster/network/network.h"
#include "sim/cluster/placement/blocks.h"
#include "sim/cluster/placement/central_groups.h"
#include "sim/cluster/placement/data_place.h"
#include "sim/cluster/placement/device_lists.h"
#include "sim/cluster/placement/message_rounds.h"
#include "sim/cluster/placement/placed_application.h"
#include "sim/cluster/placement/tally.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// Which accesses are local, of those that the remote percentage leaves.
enum class Locality : std::uint8_t {
  by_node,   // those of tasks whose node has a device of the application
  by_share,  // of every task the part that devices are of tasks, at its own node
  whole,     // none, unless there are as many devices as tasks
};

// Choices that a simulator makes and a machine does not. The first of each is ours.
struct BlockRules {
  Locality locality = Locality::by_node;
  bool has_trace_order = false;  // devices serve in the order of the trace (device_lists.h)
  // A local access has the full rate of device or memory, a remote hit is bounded by links alone,
  // and staging does not use the bandwidth of the node's device.
  bool has_free_nodes = false;
  bool messages_may_rise = true;  // their rates (class_policy.h)
  bool hits_may_rise = true;      // those of remote hits
};

// An application of blocks on its nodes.
//
//   stage in ──> input block ──> blocks ──> output block ──> stage out ──> done
//
// Each task goes through the blocks. It computes only when its messages have arrived, and waits for
// its reads and writes, and in a communication for all messages to it, round by round. Central data
// are not staged: I/O tasks read for their group and send each member its part, and write what the
// members sent.
class BlockApplication final : public PlacedApplication {
 public:
  struct Settings {
    BlockProfile profile;
    std::vector<NodeId> nodes;  // of the tasks, in their order
    DataPlace data;
    BlockRules rules;
    std::uint64_t seed = 1;  // the same one draws the same blocks, whatever the data are on
    Tally* tally = nullptr;  // counts what tasks do, if it is there; outlives the application
  };

  // REQUIRES: as many nodes as tasks; at least one device or server; no more devices than tasks
  // where Access is local; central data have 1 ... tasks readers and writers.
  BlockApplication(ClusterMachine machine, Settings settings, std::function<void()> done);

  void start() override;

 private:
  struct Task {
    std::size_t block = 0;
    TimePoint began;            // the block
    std::uint32_t round = 0;    // of a communication
    std::uint32_t sending = 0;  // messages that are under way
    bool is_held = false;       // waits for them
  };
  // What a task does in a block, drawn before the start.
  struct Plan {
    Duration compute = {};
    NodeId device = 0;
    std::uint32_t server = 0;  // of central data
    bool is_local = false;
    bool hits = false;
    DeviceLists::Number number = 0;
  };

  [[nodiscard]] std::size_t index(std::size_t block, std::uint32_t task) const {
    return block * settings_.profile.tasks + task;
  }
  [[nodiscard]] const Plan& plan(std::uint32_t task) const {
    return plans_[index(tasks_[task].block, task)];
  }
  [[nodiscard]] Bytes part(std::size_t block, std::uint32_t tasks) const;
  void make_plans();
  void plan_access(std::size_t block, std::uint32_t task, std::optional<std::uint32_t> home,
                   Random& random);

  void stage_in();
  void stage_out();
  void stage(bool is_in, std::function<void()> done);
  void begin_block(std::uint32_t task);
  void end_block(std::uint32_t task);
  void end_task();
  void compute(std::uint32_t task);

  void access(std::uint32_t task);
  void access_local(std::uint32_t task, bool reads);
  void read_remote(std::uint32_t task);
  void write_remote(std::uint32_t task);
  void read_central(std::uint32_t task);
  void pass_on(std::uint32_t leader, std::size_t block);
  void write_central(std::uint32_t task);
  void store_if_gathered(std::uint32_t leader);
  void fetch(std::uint32_t server, Bytes size, std::function<void()> done);
  void store(std::uint32_t server, Bytes size, std::function<void()> done);
  void count(const Plan& plan, Bytes size);

  MessageRounds& rounds(std::size_t block);
  void begin_round(std::uint32_t task);
  void send(std::uint32_t from, std::uint32_t to, Bytes size, std::function<void()> arrived);
  void heard(std::uint32_t task, std::size_t block, std::uint32_t round);
  void end_rounds(std::uint32_t task);

  void move(TrafficClass traffic_class, Bytes size, std::optional<BytesPerSecond> cap,
            bool may_rise, std::function<void()> done);

  ClusterMachine machine_;
  Settings settings_;
  std::function<void()> done_;
  std::vector<Block> blocks_;
  std::vector<Task> tasks_;
  std::vector<Plan> plans_;  // by block and task
  DeviceLists lists_;
  std::optional<CentralGroups> readers_;
  std::optional<CentralGroups> writers_;
  std::vector<std::uint8_t> came_;       // whether the part of a central read has, as plans_
  std::vector<std::uint32_t> gathered_;  // parts of a central write, by block and leader
  std::vector<std::unique_ptr<MessageRounds>> rounds_;  // by block
  MessageShape shape_;
  Random routes_;
  std::vector<LinkId> route_;
  std::uint32_t running_ = 0;
};

}  // namespace vpfs::sim
