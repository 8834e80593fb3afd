#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "schedulers/scheduler.h"
#include "test/support/modelled_server.h"

namespace vpfs {

// What one application of a simulation does.
struct FlowPlan {
  std::uint32_t weight = 1;
  std::uint32_t outstanding = 8;  // requests it keeps in flight while it is active
  Cost least_cost = 4 * kKiB;
  Cost most_cost = 4 * kMiB;
  std::uint32_t short_percent = 0;    // of its requests, that do less than they are charged
  Duration active = Duration::max();  // then it pauses, and so on
  Duration pause = Duration::zero();
  Duration first = Duration::zero();  // when it begins
};

// Applications in closed loop against one scheduler and one modelled server, in virtual time.
// Watches, for every pair of flows and over every interval in which both have requests queued, how
// far the cost really done drifts from the weights.
class SharingSimulation {
 public:
  SharingSimulation(Scheduler& scheduler, ModelledServer::Settings server,
                    std::vector<FlowPlan> plans, std::uint64_t seed);

  // Runs until `requests` have been completed.
  void run(std::uint64_t requests);

  [[nodiscard]] Cost done(std::uint32_t flow) const { return states_[flow].done; }
  // Every time a request completes: flow, cost done.
  std::function<void(std::uint32_t, Cost)> on_done = [](std::uint32_t, Cost) {};

  // The largest |W_f/w_f - W_g/w_g| / (c_f/w_f + c_g/w_g) over all pairs and all intervals in which
  // both were backlogged (c: largest cost charged so far). Theory: at most D + 1.
  [[nodiscard]] double worst_drift() const { return worst_drift_; }

 private:
  __extension__ using Wide = __int128;

  struct State {
    FlowPlan plan;
    Cost done = 0;
    Cost largest = 0;
    std::uint32_t in_flight = 0;
    bool backlogged = false;
  };
  struct Pair {
    bool watched = false;
    Wide least = 0;
    Wide most = 0;
  };
  struct Event {
    TimePoint time;
    std::uint32_t flow;
    bool operator>(const Event& other) const { return time > other.time; }
  };

  [[nodiscard]] bool active(const FlowPlan& plan) const;
  [[nodiscard]] TimePoint next_start(const FlowPlan& plan) const;
  void refill(std::uint32_t flow);
  void dispatch();
  void finish();
  void note_backlog(std::uint32_t flow);
  void note_done(std::uint32_t flow);
  // W_f w_g - W_g w_f
  [[nodiscard]] Wide difference(std::uint32_t f, std::uint32_t g) const;
  Pair& pair(std::uint32_t f, std::uint32_t g) {
    return pairs_[std::min(f, g) * states_.size() + std::max(f, g)];
  }

  Scheduler& scheduler_;
  ModelledServer server_;
  std::vector<State> states_;
  std::vector<Pair> pairs_;
  std::deque<IoRequest> storage_;
  std::vector<IoRequest*> free_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> starts_;
  std::mt19937_64 random_;
  TimePoint now_ = {};
  std::uint64_t completed_ = 0;
  double worst_drift_ = 0;
};

}  // namespace vpfs
