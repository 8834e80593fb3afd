#include "test/support/sharing_simulation.h"

#include <algorithm>
#include <utility>

namespace vpfs {

SharingSimulation::SharingSimulation(Scheduler& scheduler, ModelledServer::Settings server,
                                     std::vector<FlowPlan> plans, std::uint64_t seed)
    : scheduler_(scheduler), server_(server), random_(seed) {
  for (std::uint32_t flow = 0; flow < plans.size(); ++flow) {
    (void)scheduler_.set_share(AppId{flow}, {.weight = plans[flow].weight}, {});
    starts_.push({.time = TimePoint{} + plans[flow].first, .flow = flow});
    states_.push_back({.plan = plans[flow]});
  }
  pairs_.resize(states_.size() * states_.size());
}

void SharingSimulation::run(std::uint64_t requests) {
  const std::uint64_t end = completed_ + requests;
  while (completed_ < end) {
    const std::optional<TimePoint> finished = server_.next_finish();
    if (!starts_.empty() && (!finished || starts_.top().time <= *finished)) {
      const Event event = starts_.top();
      starts_.pop();
      now_ = event.time;
      refill(event.flow);
    } else {
      now_ = finished.value();
      finish();
    }
    dispatch();
  }
}

bool SharingSimulation::active(const FlowPlan& plan) const {
  if (plan.pause == Duration::zero()) return true;
  return (now_.time_since_epoch() - plan.first) % (plan.active + plan.pause) < plan.active;
}

TimePoint SharingSimulation::next_start(const FlowPlan& plan) const {
  const Duration cycle = plan.active + plan.pause;
  const auto cycles = (now_.time_since_epoch() - plan.first) / cycle + 1;
  return TimePoint{} + plan.first + cycles * cycle;
}

void SharingSimulation::refill(std::uint32_t flow) {
  State& state = states_[flow];
  if (!active(state.plan)) {
    if (state.in_flight == 0) starts_.push({.time = next_start(state.plan), .flow = flow});
    return;
  }
  while (state.in_flight < state.plan.outstanding) {
    if (free_.empty()) free_.push_back(&storage_.emplace_back());
    IoRequest& request = *free_.back();
    free_.pop_back();
    const Cost span = state.plan.most_cost - state.plan.least_cost + 1;
    request = {.app = AppId{flow}, .cost = state.plan.least_cost + random_() % span};
    state.largest = std::max(state.largest, request.cost);
    ++state.in_flight;
    scheduler_.enqueue(request, now_);
    note_backlog(flow);
  }
}

void SharingSimulation::dispatch() {
  while (IoRequest* const request = scheduler_.next(now_).request) {
    const auto flow = std::to_underlying(request->app);
    note_backlog(flow);
    const bool is_short = random_() % 100 < states_[flow].plan.short_percent;
    server_.start(*request, is_short ? random_() % (request->cost + 1) : request->cost, now_);
  }
}

void SharingSimulation::finish() {
  const ModelledServer::Finished finished = server_.finish_one(now_);
  const auto flow = std::to_underlying(finished.request->app);
  scheduler_.complete(*finished.request, finished.cost, now_);
  free_.push_back(finished.request);
  states_[flow].done += finished.cost;
  --states_[flow].in_flight;
  ++completed_;
  note_done(flow);
  on_done(flow, finished.cost);
  refill(flow);
}

SharingSimulation::Wide SharingSimulation::difference(std::uint32_t f, std::uint32_t g) const {
  return Wide{states_[f].done} * states_[g].plan.weight -
         Wide{states_[g].done} * states_[f].plan.weight;
}

void SharingSimulation::note_backlog(std::uint32_t flow) {
  const bool backlogged = scheduler_.flow(AppId{flow}).queued > 0;
  if (backlogged == std::exchange(states_[flow].backlogged, backlogged)) return;
  for (std::uint32_t other = 0; other < states_.size(); ++other) {
    if (other == flow) continue;
    Pair& both = pair(flow, other);
    both.watched = backlogged && states_[other].backlogged;
    both.least = both.most = difference(std::min(flow, other), std::max(flow, other));
  }
}

// The largest drift over the intervals of one period is the span that the running difference has.
void SharingSimulation::note_done(std::uint32_t flow) {
  for (std::uint32_t other = 0; other < states_.size(); ++other) {
    if (other == flow || !pair(flow, other).watched) continue;
    Pair& both = pair(flow, other);
    const Wide drift = difference(std::min(flow, other), std::max(flow, other));
    both.least = std::min(both.least, drift);
    both.most = std::max(both.most, drift);
    const Wide unit = Wide{states_[flow].largest} * states_[other].plan.weight +
                      Wide{states_[other].largest} * states_[flow].plan.weight;
    worst_drift_ = std::max(
        worst_drift_, static_cast<double>(both.most - both.least) / static_cast<double>(unit));
  }
}

}  // namespace vpfs
