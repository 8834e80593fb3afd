#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/cluster/network/network.h"
#include "sim/cluster/placement/data_place.h"
#include "sim/cluster/placement/exchange.h"
#include "sim/cluster/placement/placed_application.h"
#include "sim/cluster/placement/profile.h"
#include "sim/cluster/placement/storage.h"
#include "sim/cluster/placement/tally.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// A Markov application on its nodes: its data are staged in, its tasks go through their steps, and
// what was written is staged out.
//
//   stage in ──> each task: step by step ──> all have ended ──> done, and stage out behind it
//
// A task begins a step when its last one has ended. A communication ends for a task when all its
// messages have arrived and all messages to it (exchange.h). So it waits for whoever has not come
// to this communication yet. Nothing waits for the output: it goes out while the next application
// has the nodes.
class MarkovApplication final : public PlacedApplication {
 public:
  using Machine = ClusterMachine;
  struct Settings {
    Profile profile;
    std::vector<NodeId> nodes;  // of the tasks, in their order
    DataPlace data;
    bool is_staged =
        false;  // from the central servers and to them; else the data are where they are
    std::uint64_t seed = 1;  // the same one draws the same steps, whatever the data are on
    Tally* tally = nullptr;  // counts what tasks do, if it is there; outlives the application
  };

  MarkovApplication(Machine machine, Settings settings, std::function<void()> done);

  void start() override;

 private:
  struct Task {
    Random random;
    std::vector<Step> own;              // not in lockstep
    std::optional<std::uint32_t> home;  // the place on its node
    std::size_t step = 0;
    TimePoint step_began;
    std::uint32_t communications = 0;  // that it has ended
    std::uint32_t phase = 0;           // of the one that it is in
    std::uint32_t sending = 0;         // messages of this phase that are under way
  };
  // One communication of those tasks that have so many.
  struct Communication {
    Exchange exchange;
    std::vector<std::uint32_t> tasks;    // that take part
    std::vector<std::uint32_t> ranks;    // of all tasks among those
    std::vector<std::uint32_t> arrived;  // messages, by rank and phase
    std::uint32_t left = 0;              // tasks that have not ended it
  };

  [[nodiscard]] const std::vector<Step>& steps_of(const Task& task) const {
    return settings_.profile.lockstep ? steps_ : task.own;
  }
  [[nodiscard]] Bytes staged_bytes(const Task& task, Step step) const;
  [[nodiscard]] Bytes io_bytes(std::size_t step) const;
  void stage_in();
  void staged_in();
  void stage_out();
  void begin_step(std::uint32_t task);
  void end_step(std::uint32_t task);
  void access(std::uint32_t task, bool reads);
  void count_access(std::uint32_t place, NodeId node, Bytes size);
  void access_central(std::uint32_t task, std::uint32_t server, bool reads, bool hits);
  void replicate(std::uint32_t server, std::uint32_t servers, Bytes size);
  [[nodiscard]] Communication& communication(std::uint32_t number);
  void begin_phase(std::uint32_t task);
  void end_phases_that_are_over(std::uint32_t task);
  void arrived(std::uint32_t from, std::uint32_t to, std::uint32_t number, std::uint32_t phase);
  void move(TrafficClass traffic_class, Bytes size, std::function<void()> done);

  Machine machine_;
  Settings settings_;
  std::function<void()> done_;
  std::vector<Step> steps_;  // in lockstep, of all tasks
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Communication>>
      communications_;  // made by the first that comes to it
  std::vector<LinkId> route_;
  std::uint32_t first_server_ = 0;  // of staging
  std::uint32_t running_ = 0;       // tasks, or transfers of staging
};

}  // namespace vpfs::sim
