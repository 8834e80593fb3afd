#include "test/support/simulation/site_simulation.h"

#include <utility>

#include "schedulers/policies/registry.h"

namespace vpfs {

SiteSimulation::SiteSimulation(const Settings& settings, std::vector<SiteWork> works)
    : settings_(settings), works_(std::move(works)), random_(settings.seed) {
  for (std::size_t i = 0; i < settings_.servers; ++i) {
    Server& server = servers_.emplace_back();
    SchedulerSettings own = {.depth = {.requests = settings_.depth}};
    own.own.set(settings_.anticipation);
    RateLimits* const shared = settings_.lanes ? &limits_ : nullptr;
    server.scheduler = make_scheduler("sfq", own, shared).value();
    server.scheduler->set_hold(std::chrono::minutes(1), now_);
    server.done.resize(works_.size());
    server.reported.resize(works_.size());
    server.told.resize(works_.size());
  }
  for (std::size_t app = 0; app < works_.size(); ++app) {
    set_weight(app, works_[app].weight);
    add(TimePoint{} + works_[app].begin, Kind::begin, app);
  }
  add(TimePoint{} + settings_.coordinator_begins, Kind::cycle, 0);
}

double SiteSimulation::around_one(double part) {
  return 1.0 + part * std::uniform_real_distribution<>(-1.0, 1.0)(random_);
}

void SiteSimulation::set_weight(std::size_t app, std::uint32_t weight) {
  for (Server& server : servers_) {
    const auto id = AppId{static_cast<std::uint32_t>(app)};
    const Share share = {.weight = weight, .rate = works_[app].rate};
    (void)server.scheduler->set_share(id, share, now_);
  }
}

void SiteSimulation::set_limits(std::size_t app, const Limits& limits) {
  for (Server& server : servers_) {
    const auto id = AppId{static_cast<std::uint32_t>(app)};
    (void)server.scheduler->set_limits(id, limits, now_);
  }
  for (std::size_t i = 0; i < servers_.size(); ++i) pump(i);
}

void SiteSimulation::add(TimePoint at, Kind kind, std::size_t index, Part* part) {
  events_.push({.at = at, .order = order_++, .kind = kind, .index = index, .part = part});
}

void SiteSimulation::run_until(TimePoint end) {
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  now_ = end;
}

void SiteSimulation::handle(const Event& event) {
  switch (event.kind) {
    case Kind::completion:
      return complete(*event.part);
    case Kind::wake:
      if (event.at != servers_[event.index].wake)
        return;  // the scheduler has said another time since
      servers_[event.index].wake = kNever;
      return pump(event.index);
    case Kind::cycle:
      return cycle();
    case Kind::thought:
      return submit_next(event.index, event.server);
    case Kind::begin:
      const SiteWork& work = works_[event.index];
      for (std::uint32_t i = 0; i < work.in_flight; ++i) {
        if (work.striped) {
          submit_striped(event.index);
        } else {
          for (const std::size_t server : work.servers) submit(event.index, server);
        }
      }
  }
}

void SiteSimulation::submit_next(std::size_t app, std::size_t server) {
  if (now_ >= TimePoint{} + std::min(works_[app].end, Duration::max() / 2)) return;
  works_[app].striped ? submit_striped(app) : submit(app, server);
}

void SiteSimulation::submit_striped(std::size_t app) {
  if (free_ios_.empty()) free_ios_.push_back(&ios_.emplace_back());
  Io& io = *free_ios_.back();
  free_ios_.pop_back();
  io = {.app = app, .parts_left = works_[app].servers.size()};
  for (const std::size_t server : works_[app].servers) make_part(io, server);
}

void SiteSimulation::submit(std::size_t app, std::size_t server) {
  if (free_ios_.empty()) free_ios_.push_back(&ios_.emplace_back());
  Io& io = *free_ios_.back();
  free_ios_.pop_back();
  io = {.app = app, .parts_left = 1};
  make_part(io, server);
}

void SiteSimulation::make_part(Io& io, std::size_t server) {
  if (free_parts_.empty()) free_parts_.push_back(&parts_.emplace_back());
  Part& part = *free_parts_.back();
  free_parts_.pop_back();
  const std::uint64_t size = works_[io.app].part;
  part.request = {.app = AppId{static_cast<std::uint32_t>(io.app)},
                  .size = {size},
                  .cost = size,
                  .arrival = now_};
  part.io = &io;
  part.server = server;
  servers_[server].scheduler->enqueue(part.request, now_);
  pump(server);
}

void SiteSimulation::complete(Part& part) {
  const std::size_t server = part.server;
  Io& io = *part.io;
  servers_[server].scheduler->complete(part.request, part.request.cost, now_);
  servers_[server].done[io.app] += part.request.cost;
  free_parts_.push_back(&part);
  if (--io.parts_left == 0) {
    const std::size_t app = io.app;
    free_ios_.push_back(&io);
    if (works_[app].think == Duration::zero()) {
      submit_next(app, server);
    } else {
      events_.push({.at = now_ + works_[app].think,
                    .order = order_++,
                    .kind = Kind::thought,
                    .index = app,
                    .server = server});
    }
  }
  pump(server);
}

void SiteSimulation::pump(std::size_t index) {
  Server& server = servers_[index];
  for (;;) {
    const Scheduler::Decision next = server.scheduler->next(now_);
    if (next.request == nullptr) {
      if (next.until != kNever && next.until < server.wake) {
        server.wake = next.until;
        add(next.until, Kind::wake, index);
      }
      return;
    }
    Part* part = reinterpret_cast<Part*>(next.request);
    const double seconds = static_cast<double>(next.request->cost) /
                           static_cast<double>(settings_.speed) *
                           around_one(settings_.service_noise);
    server.busy_until =
        std::max(server.busy_until, now_) + Duration(static_cast<std::int64_t>(seconds * 1e9));
    add(server.busy_until, Kind::completion, index, part);
  }
}

void SiteSimulation::cycle() {
  for (std::size_t app = 0; app < works_.size(); ++app) {
    Cost sum = 0;
    for (const Server& server : servers_) sum += server.reported[app];
    for (Server& server : servers_) {
      const Cost elsewhere = sum - server.reported[app];
      const Cost more = elsewhere - std::exchange(server.told[app], elsewhere);
      // The first report is the base.
      if (cycles_ == 0) continue;
      const auto id = AppId{static_cast<std::uint32_t>(app)};
      server.scheduler->served_elsewhere(id, cycles_ == 1 ? 0 : more, settings_.delay, now_);
    }
  }
  for (Server& server : servers_) server.reported = server.done;
  ++cycles_;
  for (std::size_t i = 0; i < servers_.size(); ++i) pump(i);
  const double late = settings_.jitter * std::uniform_real_distribution<>(0.0, 1.0)(random_);
  add(now_ + settings_.period +
          Duration(static_cast<std::int64_t>(late * static_cast<double>(settings_.period.count()))),
      Kind::cycle, 0);
}

Cost SiteSimulation::done(std::size_t app) const {
  Cost sum = 0;
  for (const Server& server : servers_) sum += server.done[app];
  return sum;
}

}  // namespace vpfs
