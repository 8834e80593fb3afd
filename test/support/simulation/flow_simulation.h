#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "schedulers/scheduler.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"

namespace vpfs {

// One application of a FlowSimulation: its share and its requests.
struct FlowWork {
  Share share;
  std::uint32_t outstanding = 16;  // requests it keeps in flight while it is active
  std::uint64_t least_size = 64 * kKiB;
  std::uint64_t most_size = 64 * kKiB;
  std::uint32_t cost_permille = 1000;        // of the size
  std::uint32_t short_percent = 0;           // of its requests, that do less than they are charged
  Duration think = Duration::zero();         // from an answer to the next request
  Duration think_spread = Duration::zero();  // it is at most that much shorter or longer, at random
  // One think in so many, at random, takes kLateTimes as long; 0: none.
  static constexpr int kLateTimes = 5;
  std::uint32_t late_one_in = 0;
  Duration late = Duration::zero();   // instead of kLateTimes as long
  Duration first = Duration::zero();  // when it begins
  Duration active = Duration::max();  // then it pauses, and so on
  Duration pause = Duration::zero();
  Duration serial = Duration::zero();       // from the beginning of `active`: only one is in flight
  std::vector<std::uint8_t> classes = {0};  // each request belongs to one of these
};

// Applications in closed loop against one scheduler and one device, in virtual time. The simulation
// asks the scheduler again when that said so. Flow i is AppId i. Tests observe through the hooks.
class FlowSimulation {
 public:
  FlowSimulation(Scheduler& scheduler, sim::Device::Settings device, std::vector<FlowWork> flows,
                 std::uint64_t seed);

  void run(Duration length);
  void run_until(TimePoint end) { run(end - now()); }
  // Runs until this many more requests are done.
  void run_requests(std::uint64_t requests);
  // Calls `action` at that time, before the scheduler is asked.
  void at(TimePoint time, std::function<void()> action);
  [[nodiscard]] TimePoint now() const { return engine_.now(); }
  [[nodiscard]] std::size_t queued(std::uint32_t flow) const { return states_[flow].queued; }
  [[nodiscard]] Cost sent_cost(std::uint32_t flow) const { return states_[flow].sent_cost; }
  [[nodiscard]] std::uint64_t sent_bytes(std::uint32_t flow) const {
    return states_[flow].sent_bytes;
  }
  [[nodiscard]] Cost done(std::uint32_t flow) const { return states_[flow].done; }
  [[nodiscard]] std::uint64_t count(std::uint32_t flow) const { return states_[flow].count; }

  std::function<void(const IoRequest&)> on_enqueue = [](const IoRequest&) {};
  std::function<void(const IoRequest&)> on_sent = [](const IoRequest&) {};
  std::function<void(const IoRequest&, Cost done)> on_done = [](const IoRequest&, Cost) {};
  // A flow becomes backlogged, or its queue becomes empty.
  std::function<void(std::uint32_t flow, bool)> on_backlog = [](std::uint32_t, bool) {};

  // How often Decision::until was too late (a request was there a nanosecond before) or too early
  // (none was there at that time).
  [[nodiscard]] std::uint64_t late_answers() const { return late_answers_; }
  [[nodiscard]] std::uint64_t idle_answers() const { return idle_answers_; }
  // How often nothing was sent for a while although a request was queued and there was room.
  [[nodiscard]] std::uint64_t waits() const { return waits_; }

 private:
  struct State {
    FlowWork work;
    std::uint32_t in_flight = 0;
    std::uint32_t queued = 0;
    std::uint64_t count = 0;
    std::uint64_t sent_bytes = 0;
    Cost sent_cost = 0;
    Cost done = 0;
  };
  // The order of events at one time.
  enum Rank : sim::Engine::Rank { kAction, kStart, kEnd };

  [[nodiscard]] bool active(const FlowWork& work) const;
  // How many requests it keeps in flight now.
  [[nodiscard]] std::uint32_t wanted(const FlowWork& work) const;
  [[nodiscard]] TimePoint next_start(const FlowWork& work) const;
  // Runs the next event. False: there is none up to `end`.
  bool step(TimePoint end);
  void refill(std::uint32_t flow);
  void start_at(TimePoint time, std::uint32_t flow);
  std::uint64_t dispatch();
  void finish(IoRequest& request, Cost done);
  // The time from an answer to the next request.
  [[nodiscard]] Duration draw_think(const FlowWork& work);
  void ask_just_before(TimePoint time);

  Scheduler& scheduler_;
  sim::Engine engine_;
  sim::Device device_;
  std::vector<State> states_;
  std::deque<IoRequest> storage_;
  std::vector<IoRequest*> free_;
  std::mt19937_64 random_;
  TimePoint wake_ = kNever;  // when to ask the scheduler again
  std::uint64_t completed_ = 0;
  std::uint64_t late_answers_ = 0;
  std::uint64_t idle_answers_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace vpfs
