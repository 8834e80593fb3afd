#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/device/device.h"
#include "sim/engine/engine.h"
#include "stage/stage.h"

namespace vpfs::stage {

// One application of a StripedSimulation.
struct StripedWork {
  Share share;
  std::uint32_t processes = 8;
  // A process has so many requests in flight, for units in order, and goes on when all are done.
  std::uint32_t at_once = 1;
  std::uint64_t size = 512 * kKiB;
  // The targets that it uses, in turn. None: all of them.
  std::vector<std::uint32_t> targets = {};
  bool is_striped = true;             // if not, each process stays at one of its targets
  Duration think = Duration::zero();  // uniform from zero to twice as long
  Duration first = Duration::zero();  // when it begins
  Duration last = Duration::max();    // when it ends
};

struct StripedSettings {
  std::uint32_t targets = 2;
  bool per_target = true;
  std::uint32_t depth = 4;
  std::uint64_t speed = 100 * kMiB;   // of a target
  std::uint32_t parallelism = 1;      // of a target
  std::uint32_t jitter_percent = 50;  // of the cost of a request at the device, up and down
  std::uint64_t seed = 1;
  std::string policy = "sfq";
};

// Applications whose files are striped over the targets of one data server, behind one stage, in
// virtual time. Each process asks for the units of its file in order, so one target after the
// other, and begins where chance has it. Application i is the virtual PFS "app-i".
class StripedSimulation {
 public:
  StripedSimulation(const StripedSettings& settings, std::vector<StripedWork> works)
      : settings_(settings), random_(settings.seed), works_(std::move(works)) {
    Config config;
    config.policy = settings.policy;
    config.scheduler.depth.requests =
        settings.per_target ? settings.depth : settings.depth * settings.targets;
    config.scheduler_per_target = settings.per_target;
    config.cost.per_request = {};
    for (std::size_t i = 0; i < works_.size(); ++i) {
      config.virtual_pfs.push_back({.name = name_of(i), .share = works_[i].share});
    }
    stage_ = std::make_unique<Stage>(config, engine_.now());
    devices_.assign(settings.targets, sim::Device({.parallelism = settings.parallelism,
                                                   .cost_per_second = settings.speed}));
    done_.assign(works_.size(), std::vector<std::uint64_t>(settings.targets, 0));
    for (std::uint32_t app = 0; app < works_.size(); ++app) start(app);
  }

  void run(Duration length) {
    const TimePoint end = engine_.now() + length;
    for (;;) {
      const TimePoint until = pump();
      const TimePoint next = std::min({until, engine_.next(), end});
      engine_.skip_to(next);
      if (next == end && engine_.next() > end) return;
      while (engine_.step(engine_.now())) {
      }
    }
  }
  // Bytes that were done since forget().
  [[nodiscard]] double done(std::size_t app) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : done_[app]) sum += each;
    return static_cast<double>(sum);
  }
  [[nodiscard]] double done(std::size_t app, std::uint32_t target) const {
    return static_cast<double>(done_[app][target]);
  }
  void forget() {
    for (auto& each : done_) std::ranges::fill(each, 0);
    longest_wait_ = {};
  }
  [[nodiscard]] double ratio() const { return done(0) / done(1); }
  // How often a target had room while a request waited for it.
  [[nodiscard]] std::uint64_t idle_with_work() const { return idle_with_work_; }
  // The longest time from arrival to release since forget().
  [[nodiscard]] Duration longest_wait() const { return longest_wait_; }
  Stage& stage() { return *stage_; }
  [[nodiscard]] TimePoint now() const { return engine_.now(); }
  void at(TimePoint time, sim::Engine::Action action) { engine_.at(time, std::move(action)); }

 private:
  struct Process {
    std::uint32_t application = 0;
    std::uint32_t unit = 0;
    std::uint32_t in_flight = 0;
  };
  struct Io : Held {
    Process* of = nullptr;
  };

  static std::string name_of(std::size_t app) { return "app-" + std::to_string(app); }

  void start(std::uint32_t app) {
    const StripedWork& work = works_[app];
    for (std::uint32_t i = 0; i < work.processes; ++i) {
      Process& process = processes_.emplace_back();
      process.application = app;
      process.unit = work.is_striped ? static_cast<std::uint32_t>(random_() % 64) : i;
      engine_.at(TimePoint{} + work.first, [this, &process] { submit(process); });
    }
  }
  void submit(Process& process) {
    const StripedWork& work = works_[process.application];
    if (work.last < Duration::max() && engine_.now() >= TimePoint{} + work.last) return;
    for (std::uint32_t i = 0; i < work.at_once; ++i) submit_one(process);
  }
  void submit_one(Process& process) {
    const StripedWork& work = works_[process.application];
    if (free_.empty()) free_.push_back(&ios_.emplace_back());
    Io& io = *free_.back();
    free_.pop_back();
    io = {};
    io.of = &process;
    ++process.in_flight;
    const std::uint32_t unit = work.is_striped ? process.unit++ : process.unit;
    const std::string name = name_of(process.application);
    io.set_place(stage_->find({.virtual_pfs = name, .declared_name = name}, engine_.now()));
    io.kind = IoKind::read;
    io.size = io.asked = {work.size};
    io.cost = work.size;
    io.device =
        work.targets.empty() ? unit % settings_.targets : work.targets[unit % work.targets.size()];
    io.arrival = engine_.now();
    stage_->arrive(io, engine_.now());
  }
  TimePoint pump() {
    std::vector<Held*> let_go;
    const TimePoint until = stage_->release(engine_.now(), let_go);
    for (Held* const io : let_go) {
      Stage::took_over(*io);
      longest_wait_ = std::max(longest_wait_, engine_.now() - io->arrival);
      engine_.at(devices_[io->device].serve(jittered(io->cost), engine_.now()),
                 [this, io] { finish(*io); });
    }
    for (const Lanes::Lane& lane : stage_->lanes()) {
      const Scheduler& scheduler = *lane.scheduler;
      if (scheduler.queued() > 0 && scheduler.outstanding() < scheduler.depth().requests)
        ++idle_with_work_;
    }
    return until;
  }
  void finish(Held& io) {
    Process& process = *static_cast<Io&>(io).of;
    stage_->end(io, {.moved = io.size}, engine_.now());
    done_[process.application][io.device] += io.size.count;
    free_.push_back(&static_cast<Io&>(io));
    if (--process.in_flight > 0) return;
    const Duration mean = works_[process.application].think;
    if (mean == Duration::zero()) return submit(process);
    const auto most = static_cast<std::uint64_t>(2 * mean.count());
    const Duration think(static_cast<std::int64_t>(random_() % (most + 1)));
    engine_.after(think, [this, &process] { submit(process); });
  }
  Cost jittered(Cost cost) {
    if (settings_.jitter_percent == 0) return cost;
    const std::uint64_t spread = cost * settings_.jitter_percent / 100;
    return cost - spread + random_() % (2 * spread + 1);
  }

  StripedSettings settings_;
  std::mt19937_64 random_;
  std::vector<StripedWork> works_;
  sim::Engine engine_;
  std::unique_ptr<Stage> stage_;
  std::vector<sim::Device> devices_;
  std::deque<Process> processes_;
  std::deque<Io> ios_;
  std::vector<Io*> free_;
  std::vector<std::vector<std::uint64_t>> done_;  // by application and target
  std::uint64_t idle_with_work_ = 0;
  Duration longest_wait_ = {};
};

}  // namespace vpfs::stage
