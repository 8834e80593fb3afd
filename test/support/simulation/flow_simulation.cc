#include "test/support/simulation/flow_simulation.h"

#include <algorithm>
#include <utility>

namespace vpfs {

FlowSimulation::FlowSimulation(Scheduler& scheduler, sim::Device::Settings device,
                               std::vector<FlowWork> flows, std::uint64_t seed)
    : scheduler_(scheduler), device_(device), random_(seed) {
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
    (void)scheduler_.set_share(AppId{flow}, flows[flow].share, now());
    start_at(TimePoint{} + flows[flow].first, flow);
    states_.push_back({.work = std::move(flows[flow])});
  }
}

void FlowSimulation::at(TimePoint time, std::function<void()> action) {
  engine_.at(time, std::move(action), kAction);
}

void FlowSimulation::start_at(TimePoint time, std::uint32_t flow) {
  engine_.at(
      time, [this, flow] { refill(flow); }, kStart);
}

void FlowSimulation::run(Duration length) {
  const TimePoint end = now() + length;
  dispatch();
  while (step(end)) {
  }
  engine_.skip_to(end);
}

void FlowSimulation::run_requests(std::uint64_t requests) {
  const std::uint64_t end = completed_ + requests;
  dispatch();
  while (completed_ < end && step(kNever - Duration(1))) {
  }
}

bool FlowSimulation::step(TimePoint end) {
  const TimePoint next = std::min(wake_, engine_.next());
  if (next > end) return false;
  const bool is_wake = next == wake_;
  if (is_wake) ask_just_before(next);
  const bool alone = is_wake && engine_.next() > next;
  engine_.skip_to(next);
  if (!alone) {
    // Flows that start at one time enqueue before anything is sent.
    do {
      engine_.step(next);
    } while (engine_.next_is_now(kStart));
  }
  const std::uint64_t sent = dispatch();
  // A request that the depth does not admit is not an idle answer.
  if (alone && sent == 0 && (wake_ != kNever || scheduler_.outstanding() == 0)) ++idle_answers_;
  return true;
}

void FlowSimulation::ask_just_before(TimePoint time) {
  const TimePoint before = time - Duration(1);
  if (before <= now()) return;
  engine_.skip_to(before);
  if (dispatch() > 0) ++late_answers_;
  wake_ = time;
}

bool FlowSimulation::active(const FlowWork& work) const {
  if (work.pause == Duration::zero()) return true;
  return (now().time_since_epoch() - work.first) % (work.active + work.pause) < work.active;
}

std::uint32_t FlowSimulation::wanted(const FlowWork& work) const {
  if (work.serial == Duration::zero()) return work.outstanding;
  const Duration since = now().time_since_epoch() - work.first;
  const bool repeats = work.pause > Duration::zero();
  const Duration in_cycle = repeats ? since % (work.active + work.pause) : since;
  return in_cycle < work.serial ? 1 : work.outstanding;
}

TimePoint FlowSimulation::next_start(const FlowWork& work) const {
  const Duration cycle = work.active + work.pause;
  const auto cycles = (now().time_since_epoch() - work.first) / cycle + 1;
  return TimePoint{} + work.first + cycles * cycle;
}

void FlowSimulation::refill(std::uint32_t flow) {
  State& state = states_[flow];
  const FlowWork& work = state.work;
  if (!active(work)) {
    if (state.in_flight == 0) start_at(next_start(work), flow);
    return;
  }
  const std::uint32_t most = wanted(work);
  while (state.in_flight < most) {
    if (free_.empty()) free_.push_back(&storage_.emplace_back());
    IoRequest& request = *free_.back();
    free_.pop_back();
    const std::uint64_t size = work.least_size + random_() % (work.most_size - work.least_size + 1);
    request = {.app = AppId{flow},
               .traffic_class = work.classes[random_() % work.classes.size()],
               .size = {size},
               .cost = std::max<Cost>(size * work.cost_permille / 1000, 1),
               .arrival = now()};
    ++state.in_flight;
    if (state.queued++ == 0) on_backlog(flow, true);
    on_enqueue(request);
    scheduler_.enqueue(request, now());
  }
}

std::uint64_t FlowSimulation::dispatch() {
  for (std::uint64_t sent = 0;; ++sent) {
    const Scheduler::Decision decision = scheduler_.next(now());
    if (decision.request == nullptr) {
      wake_ = decision.until;
      if (wake_ != kNever) ++waits_;
      return sent;
    }
    IoRequest& request = *decision.request;
    const auto flow = std::to_underlying(request.app);
    State& state = states_[flow];
    ++state.count;
    state.sent_bytes += request.size.count;
    state.sent_cost += request.cost;
    on_sent(request);
    if (--state.queued == 0) on_backlog(flow, false);
    const bool is_short = random_() % 100 < state.work.short_percent;
    const Cost done = is_short ? random_() % (request.cost + 1) : request.cost;
    engine_.at(
        device_.serve(done, now()), [this, &request, done] { finish(request, done); }, kEnd);
  }
}

void FlowSimulation::finish(IoRequest& request, Cost done) {
  const auto flow = std::to_underlying(request.app);
  scheduler_.complete(request, done, now());
  on_done(request, done);
  states_[flow].done += done;
  ++completed_;
  free_.push_back(&request);
  const auto go_on = [this, flow] {
    --states_[flow].in_flight;
    refill(flow);
  };
  const FlowWork& work = states_[flow].work;
  if (work.think == Duration::zero()) return go_on();
  engine_.after(draw_think(work), go_on, kStart);
}

Duration FlowSimulation::draw_think(const FlowWork& work) {
  const std::int64_t spread = work.think_spread.count();
  Duration think = work.think;
  if (spread > 0) {
    const std::uint64_t width = 2 * static_cast<std::uint64_t>(spread) + 1;
    think += Duration(static_cast<std::int64_t>(random_() % width) - spread);
  }
  const bool is_late = work.late_one_in > 0 && random_() % work.late_one_in == 0;
  if (!is_late) return think;
  return work.late > Duration::zero() ? work.late : think * FlowWork::kLateTimes;
}

}  // namespace vpfs
