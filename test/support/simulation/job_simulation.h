#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/policies/registry.h"
#include "sim/device/device.h"
#include "sim/engine/engine.h"

namespace vpfs {

// Jobs against a scheduler of the policy `adaptbf` and one device in virtual time. The simulation
// asks again when the scheduler said so, and checks the invariants after every step.
class JobSimulation {
 public:
  JobSimulation(const SchedulerSettings& settings, sim::Device::Settings device,
                std::uint64_t seed);

  void set_job(std::uint32_t job, std::uint64_t nodes);
  void remove(std::uint32_t job);
  // Keeps this many requests in flight from now on; zero ends it.
  void flood(std::uint32_t job, std::uint32_t in_flight, Cost least, Cost most);
  // Sends a request each `interval` from now on; zero ends it.
  void trickle(std::uint32_t job, Duration interval, Cost cost);
  void arrive(std::uint32_t job, Cost cost);
  // Sets the speed for requests sent from now on, in thousandths of the device's own.
  void set_speed(std::uint64_t permille) { speed_permille_ = permille; }
  void run_until(TimePoint end);
  void run_for(Duration time) { run_until(now() + time); }
  // Ends all sources and runs until nothing is left.
  void drain();
  // REQUIRES: nothing is queued or at the server.
  void jump(Duration time) { engine_.skip_to(now() + time); }

  [[nodiscard]] TimePoint now() const { return engine_.now(); }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] Cost done(std::uint32_t job) const { return jobs_[job].done; }
  [[nodiscard]] Cost done() const;
  [[nodiscard]] std::uint64_t requests(std::uint32_t job) const { return jobs_[job].requests; }
  [[nodiscard]] StatusFields report(std::uint32_t job) const {
    return scheduler_->report(AppId{job}, now());
  }
  [[nodiscard]] std::uint64_t capacity() const {
    return static_cast<std::uint64_t>(scheduler_->server(now()).integer("capacity").value_or(0));
  }
  [[nodiscard]] std::string_view capacity_source() const {
    return scheduler_->server(now()).get<std::string_view>("capacity_source").value_or("");
  }

  // Violated invariants; empty if there were none.
  [[nodiscard]] std::string faults() const;

 private:
  struct Faults {
    std::uint64_t records_not_zero = 0;  // the records of all jobs did not sum to zero
    std::uint64_t no_time = 0;           // nothing was sent, and nothing said when to ask again
    std::uint64_t too_late = 0;          // or that was later than the end of the period
    std::uint64_t too_early = 0;         // or not at its end, and there was nothing to send then
    std::uint64_t missed = 0;            // or something could be sent before
    std::uint64_t out_of_order = 0;
  };
  struct Tracked : IoRequest {
    std::uint64_t number = 0;
  };
  struct Job {
    std::uint32_t flood = 0;
    Cost least = 1;
    Cost most = 1;
    Duration interval = {};
    Cost trickled = 1;
    std::uint64_t source = 0;  // tells a trickle from those before it
    std::uint32_t in_flight = 0;
    std::uint64_t arrived = 0;
    std::uint64_t sent = 0;
    std::uint64_t requests = 0;
    Cost done = 0;
  };
  // The order of events at one time.
  enum Rank : sim::Engine::Rank { kEnd, kDrop };

  void enqueue(std::uint32_t job, Cost cost);
  void refill(std::uint32_t job);
  void dispatch();
  void wait(TimePoint until);
  // Adds a request of a trickle at that time.
  void drop_at(TimePoint time, std::uint32_t job, std::uint64_t source);
  void finish(Tracked& request);
  void check_records();
  bool step(TimePoint end);

  SchedulerSettings settings_;
  std::unique_ptr<Scheduler> scheduler_;
  sim::Engine engine_;
  sim::Device device_;
  std::uint64_t speed_permille_ = 1000;
  std::mt19937_64 random_;
  std::vector<Job> jobs_;
  std::deque<Tracked> storage_;
  std::vector<Tracked*> free_;
  TimePoint first_ = kNever;  // when the first period began
  TimePoint ask_again_ = kNever;
  std::uint64_t steps_ = 0;
  Faults faults_;
};

}  // namespace vpfs
