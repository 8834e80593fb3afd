#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "sim/network/network.h"
#include "sim/placement/data_place.h"
#include "sim/placement/profile.h"
#include "sim/placement/storage.h"
#include "sim/placement/tally.h"

namespace vpfs::sim {

// A Markov application on its nodes: its data are staged in, its tasks go through their steps, and
// what was written is staged out.
//
//   stage in ──> each task: step by step ──> all have ended ──> stage out ──> done
//
// A task begins a step when its last one has ended. A communication ends for a task when all that
// it sent has arrived; in lockstep also when all has come that others send it in this step. So a
// task waits for those that it hears from, and nobody else.
class MarkovApplication {
 public:
  // What it runs on; all outlive it.
  struct Site {
    Engine& engine;
    Network& network;
    const Topology& topology;
    const Storage& storage;
  };
  struct Settings {
    Profile profile;
    std::vector<NodeId> nodes;  // of the tasks, in their order
    DataPlace data;
    bool is_staged =
        false;  // from the central servers and to them; else the data are where they are
    std::uint64_t seed = 1;  // the same one draws the same steps, whatever the data are on
    Tally* tally = nullptr;  // counts what tasks do, if it is there; outlives the application
  };

  MarkovApplication(Site site, Settings settings, std::function<void()> done);
  MarkovApplication(const MarkovApplication&) = delete;
  MarkovApplication& operator=(const MarkovApplication&) = delete;

  void start();

 private:
  struct Task {
    Random random;
    std::vector<Step> own;  // not in lockstep
    std::size_t step = 0;
    TimePoint step_began;
    std::uint32_t sending = 0;             // messages of this step that are under way
    std::vector<std::uint32_t> to_arrive;  // in lockstep: messages, by step
  };

  void draw_lockstep(Random& random);
  [[nodiscard]] const std::vector<Step>& steps_of(const Task& task) const {
    return settings_.profile.lockstep ? steps_ : task.own;
  }
  void send(const Message& message, std::size_t step);
  void stage(bool in);
  void staged(bool in);
  void begin_step(std::uint32_t task);
  void end_step(std::uint32_t task);
  void access(std::uint32_t task, bool reads);
  void count_access(std::uint32_t place, NodeId node);
  void communicate(std::uint32_t task);
  void arrived(std::uint32_t from, std::uint32_t to, std::size_t step);
  void end_communication_if_all_came(std::uint32_t task);
  void move(TrafficClass traffic_class, Bytes size, std::function<void()> done);

  Site site_;
  Settings settings_;
  std::function<void()> done_;
  std::vector<Step> steps_;                     // in lockstep, of all tasks
  std::vector<std::vector<Message>> messages_;  // likewise, by step
  std::vector<Task> tasks_;
  std::vector<LinkId> route_;
  std::uint32_t running_ = 0;  // tasks, or transfers of staging
};

}  // namespace vpfs::sim
