#include "test/support/flow_simulation.h"

#include <algorithm>
#include <utility>

namespace vpfs {

FlowSimulation::FlowSimulation(Scheduler& scheduler, ModelledServer::Settings server,
                               std::vector<FlowWork> flows, std::uint64_t seed)
    : scheduler_(scheduler), server_(server), random_(seed) {
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
    (void)scheduler_.set_share(AppId{flow}, flows[flow].share, now_);
    starts_.push({.time = TimePoint{} + flows[flow].first, .flow = flow});
    states_.push_back({.work = std::move(flows[flow])});
  }
}

void FlowSimulation::at(TimePoint time, std::function<void()> action) {
  actions_.emplace(time, std::move(action));
}

void FlowSimulation::run(Duration length) {
  const TimePoint end = now_ + length;
  dispatch(now_);
  for (TimePoint next = next_event(); next <= end; next = next_event()) {
    const bool is_wake = next == wake_;
    if (is_wake) ask_just_before(next);
    now_ = next;
    const bool alone = is_wake && (!server_.next_finish() || *server_.next_finish() > next) &&
                       (starts_.empty() || starts_.top().time > next) &&
                       (actions_.empty() || actions_.begin()->first > next);
    if (!alone) take_event();
    const std::uint64_t sent = dispatch(now_);
    // Unless a request came up that the depth does not admit.
    if (alone && sent == 0 && (wake_ != kNever || scheduler_.outstanding() == 0)) ++idle_answers_;
  }
  now_ = end;
}

TimePoint FlowSimulation::next_event() const {
  TimePoint next = std::min(wake_, server_.next_finish().value_or(kNever));
  if (!starts_.empty()) next = std::min(next, starts_.top().time);
  if (!actions_.empty()) next = std::min(next, actions_.begin()->first);
  return next;
}

void FlowSimulation::take_event() {
  if (!actions_.empty() && actions_.begin()->first == now_) {
    const auto action = actions_.extract(actions_.begin());
    action.mapped()();
  } else if (!starts_.empty() && starts_.top().time == now_) {
    while (!starts_.empty() && starts_.top().time == now_) {
      const Start start = starts_.top();
      starts_.pop();
      refill(start.flow);
    }
  } else {
    finish();
  }
}

void FlowSimulation::ask_just_before(TimePoint time) {
  const TimePoint before = time - Duration(1);
  if (before <= now_) return;
  if (dispatch(before) > 0) ++late_answers_;
  wake_ = time;
}

bool FlowSimulation::active(const FlowWork& work) const {
  if (work.pause == Duration::zero()) return true;
  return (now_.time_since_epoch() - work.first) % (work.active + work.pause) < work.active;
}

TimePoint FlowSimulation::next_start(const FlowWork& work) const {
  const Duration cycle = work.active + work.pause;
  const auto cycles = (now_.time_since_epoch() - work.first) / cycle + 1;
  return TimePoint{} + work.first + cycles * cycle;
}

void FlowSimulation::refill(std::uint32_t flow) {
  State& state = states_[flow];
  const FlowWork& work = state.work;
  if (!active(work)) {
    if (state.in_flight == 0) starts_.push({.time = next_start(work), .flow = flow});
    return;
  }
  while (state.in_flight < work.outstanding) {
    if (free_.empty()) free_.push_back(&storage_.emplace_back());
    IoRequest& request = *free_.back();
    free_.pop_back();
    const std::uint64_t size = work.least_size + random_() % (work.most_size - work.least_size + 1);
    request = {.app = AppId{flow},
               .traffic_class = work.classes[random_() % work.classes.size()],
               .size = {size},
               .cost = std::max<Cost>(size * work.cost_permille / 1000, 1),
               .arrival = now_};
    ++state.in_flight;
    if (state.queued++ == 0) on_backlog(flow, true);
    on_enqueue(request);
    scheduler_.enqueue(request, now_);
  }
}

std::uint64_t FlowSimulation::dispatch(TimePoint now) {
  now_ = now;
  for (std::uint64_t sent = 0;; ++sent) {
    const Scheduler::Decision decision = scheduler_.next(now_);
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
    server_.start(request, is_short ? random_() % (request.cost + 1) : request.cost, now_);
  }
}

void FlowSimulation::finish() {
  const ModelledServer::Finished finished = server_.finish_one(now_);
  const auto flow = std::to_underlying(finished.request->app);
  scheduler_.complete(*finished.request, finished.cost, now_);
  on_done(*finished.request, finished.cost);
  states_[flow].done += finished.cost;
  --states_[flow].in_flight;
  free_.push_back(finished.request);
  refill(flow);
}

}  // namespace vpfs
