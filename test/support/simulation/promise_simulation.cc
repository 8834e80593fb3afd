#include "test/support/simulation/promise_simulation.h"

#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs {
namespace {

constexpr Duration kMostLatency = Duration(std::int64_t{1} << 60);

SignedWide nanoseconds(TimePoint time) {
  return time.time_since_epoch().count();
}
SignedWide divide_up(SignedWide dividend, SignedWide divisor) {
  return dividend >= 0 ? (dividend + divisor - 1) / divisor : dividend / divisor;
}
TimePoint time_point(SignedWide count) {
  return TimePoint(Duration(static_cast<std::int64_t>(count)));
}

}  // namespace

PromiseSimulation::PromiseSimulation(const SchedulerSettings& settings,
                                     std::uint64_t cost_per_second, std::uint64_t seed)
    : settings_(settings),
      scheduler_(make_scheduler("edf", settings).value()),
      device_({.cost_per_second = cost_per_second}),
      random_(seed) {}

Result<void> PromiseSimulation::set_share(std::uint32_t index, const Share& share) {
  Result<void> result = scheduler_->set_share(AppId{index}, share, now());
  if (index >= flows_.size()) flows_.resize(index + 1);
  Flow& flow = flows_[index];
  const bool had_one = flow.promised;
  const Share before = std::exchange(flow.share, share);
  flow.promised = result && share.rate.count > 0 && share.latency > Duration::zero();
  if (!flow.promised || (had_one && before == share)) return result;
  // The bucket keeps its missing tokens, up to an empty bucket. A new bucket is full.
  const SignedWide missing = had_one ? flow.full_at - nanoseconds(now()) * before.rate.count : 0;
  flow.full_at =
      nanoseconds(now()) * share.rate.count +
      std::clamp<SignedWide>(missing, 0, SignedWide{share.burst.count} * kNanosecondsPerSecond);
  flow.since = now();
  flow.curve = ++curves_;
  return result;
}

void PromiseSimulation::remove(std::uint32_t flow) {
  scheduler_->remove(AppId{flow}, now());
  flows_[flow].promised = false;
}

void PromiseSimulation::arrive(std::uint32_t flow, TimePoint at, Cost cost) {
  VPFS_ASSERT(at >= now());
  engine_.at(
      at, [this, flow, cost] { enqueue(flow, cost); }, kArrival);
}

void PromiseSimulation::flood(std::uint32_t flow, std::uint32_t in_flight, Cost least, Cost most) {
  flows_[flow].flood = in_flight;
  flows_[flow].least = least;
  flows_[flow].most = most;
  refill(flow);
  dispatch();
}

PromiseSimulation::Tracked& PromiseSimulation::free_request() {
  if (free_.empty()) return storage_.emplace_back();
  Tracked& request = *free_.back();
  free_.pop_back();
  request = {};
  return request;
}

void PromiseSimulation::enqueue(std::uint32_t index, Cost cost) {
  Flow& flow = flows_[index];
  Tracked& request = free_request();
  request.app = AppId{index};
  request.cost = cost;
  request.arrival = now();
  request.number = flow.arrived++;
  ++flow.in_flight;
  flow.queued.push_back(&request);
  scheduler_->enqueue(request, now());
}

void PromiseSimulation::refill(std::uint32_t index) {
  Flow& flow = flows_[index];
  while (flow.in_flight < flow.flood) {
    enqueue(index, flow.least + random_() % (flow.most - flow.least + 1));
  }
}

bool PromiseSimulation::withdraw_one(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (flow.queued.empty()) return false;
  Tracked& request = *flow.queued.back();
  flow.queued.pop_back();
  --flow.in_flight;
  --flow.arrived;
  scheduler_->withdraw(request, now());
  free_.push_back(&request);
  return true;
}

void PromiseSimulation::dispatch() {
  while (IoRequest* const next = scheduler_->next(now()).request) {
    auto& request = static_cast<Tracked&>(*next);
    Flow& flow = flows_[std::to_underlying(request.app)];
    out_of_order_ = out_of_order_ || flow.queued.front() != &request ||
                    request.number != flow.sent || request.arrival > now();
    ++flow.sent;
    flow.queued.pop_front();
    if (flow.promised) note_sent(flow, request);
    outstanding_ += request.cost;
    engine_.at(
        device_.serve(request.cost, now()), [this, &request] { finish(request); }, kEnd);
  }
  if (scheduler_->queued() == 0 || scheduler_->outstanding() >= settings_.depth.requests) return;
  // The depth in cost counts the largest head, since any may be next.
  Cost largest = 0;
  for (const Flow& flow : flows_) {
    if (!flow.queued.empty()) largest = std::max(largest, flow.queued.front()->cost);
  }
  idled_ =
      idled_ || scheduler_->outstanding() == 0 || outstanding_ + largest <= settings_.depth.cost;
}

// S = max(arrival, when the bucket holds the cost), deadline = S + latency.
void PromiseSimulation::note_sent(Flow& flow, Tracked& request) {
  const SignedWide rate = flow.share.rate.count;
  const SignedWide burst = std::max<SignedWide>(flow.share.burst.count, 1);
  const SignedWide cost = request.cost;
  const TimePoint from = std::max(request.arrival, flow.since);
  const SignedWide beyond = std::max<SignedWide>(cost - burst, 0) * kNanosecondsPerSecond;
  const SignedWide holds_at =
      flow.full_at - std::max<SignedWide>(burst - cost, 0) * kNanosecondsPerSecond;
  request.curve = flow.curve;
  request.start = std::max(from, time_point(divide_up(holds_at, rate)));
  request.deadline = request.start + std::min(flow.share.latency, kMostLatency) +
                     Duration(static_cast<std::int64_t>(beyond / rate));
  const SignedWide charged =
      std::max(flow.full_at, nanoseconds(from) * rate) + cost * kNanosecondsPerSecond;
  const SignedWide empty =
      nanoseconds(now()) * rate + std::max(burst, cost) * kNanosecondsPerSecond;
  flow.full_at = std::min(charged, empty);
}

void PromiseSimulation::finish(Tracked& request) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  Watch& watch = flow.watch;
  scheduler_->complete(request, request.cost, now());
  outstanding_ -= request.cost;
  --flow.in_flight;
  ++completed_;
  ++watch.requests;
  watch.done += request.cost;
  watch.last_end = now();
  const Duration taken = now() - request.arrival;
  watch.longest = std::max(watch.longest, taken);
  watch.misses += taken > flow.share.latency ? 1 : 0;
  watch.worst_tardiness = std::max(watch.worst_tardiness, taken - flow.share.latency);
  if (request.curve > 0) {
    watch.worst_lateness = std::max(watch.worst_lateness, now() - request.deadline);
    watch.tightest = std::max(watch.tightest,
                              static_cast<double>((now() - request.start).count()) /
                                  static_cast<double>((request.deadline - request.start).count()));
  }
  free_.push_back(&request);
  refill(index);
}

bool PromiseSimulation::step(TimePoint end) {
  const TimePoint at = engine_.next();
  if (at == kNever || at > end) return false;
  engine_.skip_to(at);
  const bool arrives = engine_.next_is_now(kArrival);
  engine_.step(at);
  // Requests that arrive at one moment may arrive together or one by one, at random.
  while (arrives && engine_.next_is_now(kArrival) && random_() % 2 == 0) engine_.step(at);
  dispatch();
  return true;
}

void PromiseSimulation::run_until(TimePoint end) {
  while (step(end)) {
  }
  engine_.skip_to(end);
}

void PromiseSimulation::drain() {
  for (Flow& flow : flows_) flow.flood = 0;
  while (step(kNever)) {
  }
}

Duration PromiseSimulation::worst_lateness() const {
  Duration worst = Duration::min();
  for (const Flow& flow : flows_) worst = std::max(worst, flow.watch.worst_lateness);
  return worst;
}

double PromiseSimulation::tightest() const {
  double worst = 0;
  for (const Flow& flow : flows_) worst = std::max(worst, flow.watch.tightest);
  return worst;
}

}  // namespace vpfs
