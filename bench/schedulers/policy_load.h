// What the costs of schedulers are measured with: policies with the shares of their flows, and a
// load that keeps all flows backlogged while time advances at every request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "schedulers/scheduler.h"

namespace vpfs {

inline constexpr std::uint32_t kDepth = 4;
inline constexpr std::uint32_t kQueuedPerFlow = 2;

// The modelled server serves one request of mean cost per step.
inline constexpr Duration kStep = std::chrono::microseconds(10);
inline constexpr Cost kMeanCost = 4 * kKiB + kMiB / 2;
inline constexpr std::uint64_t kThroughput = kMeanCost * (std::chrono::seconds(1) / kStep);
// Smaller than some requests, so that a bucket must fill before its flow is due again.
inline constexpr Bytes kBurst = {kMiB / 2};
// The sum of all rates, in percent of the server's throughput. Most flows are due at any time.
inline constexpr std::uint64_t kRatesPercent = 400;
inline constexpr std::uint64_t kMinimumsPercent = 50;
inline constexpr std::uint64_t kPromisedPercent = 50;
// Each new promise is checked against all others, so more would take minutes to set up.
inline constexpr std::uint32_t kMostPromised = 1000;
inline constexpr std::uint64_t kAdapTbfCapacityPercent = 125;

std::uint32_t weight_of(std::uint32_t flow);
Cost random_cost(std::mt19937_64& random);

// A policy, and the share that each flow has in it.
struct Variant {
  std::string_view name;
  std::string_view policy;
  Share (*share)(std::uint32_t flow, std::uint32_t flows);
  bool anticipates = false;
  std::uint32_t queued_per_flow = kQueuedPerFlow;
  bool thinks = false;  // see PolicyLoad
};

// All that are measured, in the order of their names.
std::span<const Variant> measured_variants();

// Every flow keeps its requests queued. kDepth requests are outstanding and complete in order; of
// flows with one request each, so many flows have nothing queued.
//
// A flow that thinks has one request, and sends the next one half as many steps after an answer as
// there are flows. So up to half of them are expected at any time. A slot that is kept stays empty.
class PolicyLoad {
 public:
  PolicyLoad(const Variant& variant, std::uint32_t flows);

  void one_request() {
    if (!thinking_.empty()) return one_request_of_a_thinker();
    now_ += kStep;
    IoRequest*& oldest = outstanding_[turn_++ % kDepth];
    scheduler_->complete(*oldest, oldest->cost, now_);
    enqueue(*oldest);
    oldest = next();
  }

 private:
  void one_request_of_a_thinker();
  void enqueue(IoRequest& request) {
    request.arrival = now_;
    scheduler_->enqueue(request, now_);
  }
  IoRequest* next() {
    for (;;) {
      const Scheduler::Decision decision = scheduler_->next(now_);
      if (decision.request != nullptr) return decision.request;
      VPFS_ASSERT(decision.until > now_ && decision.until != kNever);
      now_ = decision.until;
    }
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::vector<IoRequest> requests_;
  IoRequest* outstanding_[kDepth] = {};
  std::vector<IoRequest*> thinking_;  // a ring; empty unless flows think
  std::size_t turn_ = 0;
  TimePoint now_ = TimePoint{} + std::chrono::seconds(1);
};

}  // namespace vpfs
