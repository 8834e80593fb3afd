#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "base/wide.h"
#include "schedulers/policies/registry.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"

namespace vpfs {

// Flows with arrival curves, and others, against one scheduler and one device in virtual time.
//
// The simulation computes by itself the deadline of every request with a promise, from the flow's
// arrivals and the times when its earlier requests were sent. The curve's bucket charges each
// request once, and is never below zero after a request was sent: a request sent ahead of its time
// is not charged later.
class PromiseSimulation {
 public:
  // Starts are rounded up to the nanosecond, which may move them closer together.
  static constexpr Duration kRounding = Duration(3);

  // The observations of a flow.
  struct Watch {
    std::uint64_t requests = 0;
    Cost done = 0;
    Duration longest = {};                      // from arrival to the end
    Duration worst_tardiness = {};              // after arrival + latency
    std::uint64_t misses = 0;                   // of arrival + latency
    Duration worst_lateness = Duration::min();  // against the promise
    double tightest = 0;  // of what a promise allowed from its start to the deadline, what was used
    TimePoint last_end = {};
  };

  PromiseSimulation(const SchedulerSettings& settings, std::uint64_t cost_per_second,
                    std::uint64_t seed);

  // Adds a flow, or changes its share now.
  Result<void> set_share(std::uint32_t flow, const Share& share);
  void remove(std::uint32_t flow);
  // Adds a request that arrives at `at`. REQUIRES: `at` is not in the past.
  void arrive(std::uint32_t flow, TimePoint at, Cost cost);
  // Keeps this many requests in flight from now on; zero ends it.
  void flood(std::uint32_t flow, std::uint32_t in_flight, Cost least, Cost most);
  // Withdraws the flow's youngest queued request; returns whether there was one.
  bool withdraw_one(std::uint32_t flow);
  void set_rate(std::uint64_t cost_per_second) { device_.set_rate(cost_per_second); }
  void run_until(TimePoint end);
  // Ends floods and runs until nothing is left.
  void drain();

  [[nodiscard]] TimePoint now() const { return engine_.now(); }
  // REQUIRES: no request is on its way.
  void skip_to(TimePoint time) { engine_.skip_to(time); }
  [[nodiscard]] const Watch& watch(std::uint32_t flow) const { return flows_[flow].watch; }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  // The extremes over all promised flows.
  [[nodiscard]] Duration worst_lateness() const;
  [[nodiscard]] double tightest() const;
  // Whether a request was queued while the depth had room, or left its flow's queue out of order.
  [[nodiscard]] bool idled() const { return idled_; }
  [[nodiscard]] bool out_of_order() const { return out_of_order_; }

 private:
  struct Tracked : IoRequest {
    std::uint64_t number = 0;
    std::uint64_t curve = 0;  // when not zero, the promise that `deadline` is of
    TimePoint start = {};
    TimePoint deadline = {};
  };
  struct Flow {
    Share share;
    bool promised = false;
    std::uint64_t curve = 0;
    TimePoint since = {};
    SignedWide full_at = 0;  // of the bucket, in parts of a nanosecond, of which one has `rate`
    std::uint32_t flood = 0;
    Cost least = 1;
    Cost most = 1;
    std::uint32_t in_flight = 0;
    std::uint64_t arrived = 0;
    std::uint64_t sent = 0;
    std::deque<Tracked*> queued;
    Watch watch;
  };
  // The order of events at one time.
  enum Rank : sim::Engine::Rank { kArrival, kEnd };

  Tracked& free_request();
  void enqueue(std::uint32_t flow, Cost cost);
  void refill(std::uint32_t flow);
  void dispatch();
  void finish(Tracked& request);
  void note_sent(Flow& flow, Tracked& request);
  bool step(TimePoint end);

  SchedulerSettings settings_;
  std::unique_ptr<Scheduler> scheduler_;
  sim::Engine engine_;
  sim::Device device_;  // one request at a time
  std::mt19937_64 random_;
  std::vector<Flow> flows_;
  std::deque<Tracked> storage_;
  std::vector<Tracked*> free_;
  std::uint64_t curves_ = 0;
  std::uint64_t completed_ = 0;
  Cost outstanding_ = 0;
  bool idled_ = false;
  bool out_of_order_ = false;
};

}  // namespace vpfs
