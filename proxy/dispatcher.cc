#include "proxy/dispatcher.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"

namespace vpfs::proxy {
namespace {
// A data server has few targets.
constexpr std::size_t kMostLanes = 64;
}  // namespace

Dispatcher::Dispatcher(Setup setup, stage::VirtualPfsTable table, std::size_t workers,
                       WakeUp wake_up, TimePoint now)
    : wake_up_(std::move(wake_up)),
      lane_per_target_(setup.lane_per_target),
      cost_model_(setup.cost_model),
      make_scheduler_(std::move(setup.make_scheduler)),
      table_(std::move(table)),
      inboxes_(workers) {
  clients_.configure(setup.client_limits);
  lanes_.push_back({.target = std::nullopt, .scheduler = make_scheduler_()});
  table_.start(now);
  set_shares(table_.everybody(), now);
}

// The time that the scheduler sees never goes back.
TimePoint Dispatcher::advance(TimePoint now) {
  return last_now_ = std::max(last_now_, now);
}

AppId Dispatcher::app_of(const stage::Classifier::Match& match, TimePoint now) {
  const std::lock_guard lock(mutex_);
  now = advance(now);
  const stage::VirtualPfsTable::Found found = table_.find_or_make(match, now);
  if (found.made) set_shares({found.app}, now);
  return found.app;
}

// The first target takes the lane that is there from the start; those beyond kMostLanes share it.
std::size_t Dispatcher::lane_of(const PendingIo& io, TimePoint now) {
  if (!lane_per_target_) return 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].target) lanes_[i].target = io.device;
    if (lanes_[i].target == io.device) return i;
  }
  if (lanes_.size() == kMostLanes) return reused_lane(io.device);
  Lane& lane = lanes_.emplace_back(Lane{.target = io.device, .scheduler = make_scheduler_()});
  for (const AppId app : table_.everybody()) {
    if (table_[app].removed) (void)lane.scheduler->set_share(app, {}, now);
  }
  set_shares(lane, table_.everybody(), now);
  return lanes_.size() - 1;
}

// Whoever names many targets must not take the lanes from those that are there.
std::size_t Dispatcher::reused_lane(std::uint32_t target) {
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    const Scheduler& scheduler = *lanes_[i].scheduler;
    if (scheduler.queued() > 0 || scheduler.outstanding() > 0) continue;
    lanes_[i].target = target;
    return i;
  }
  return 0;
}

void Dispatcher::set_shares(const std::vector<AppId>& apps, TimePoint now) {
  for (const AppId app : apps) table_[app].refused_promise.clear();
  for (Lane& lane : lanes_) set_shares(lane, apps, now);
}

// Promises that fit together may not fit beside those that they replace, so those that were refused
// are asked for again when all others are in force.
void Dispatcher::set_shares(Lane& lane, const std::vector<AppId>& apps, TimePoint now) {
  std::vector<AppId> refused;
  for (const AppId app : apps) {
    stage::VirtualPfs& pfs = table_[app];
    if (pfs.removed) {
      lane.scheduler->remove(app, now);
    } else if (!lane.scheduler->set_share(app, pfs.share_to_come(now), now)) {
      refused.push_back(app);
    }
  }
  for (const AppId app : refused) {
    stage::VirtualPfs& pfs = table_[app];
    const Result<void> promised = lane.scheduler->set_share(app, pfs.share_to_come(now), now);
    if (promised) continue;
    pfs.refused_promise = promised.error().message;
    spdlog::warn("virtual PFS {}: {}", pfs.name, pfs.refused_promise);
  }
}

void Dispatcher::reconfigure(Change change, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    now = advance(now);
    cost_model_ = change.cost_model;
    clients_.configure(change.client_limits);
    const std::vector<AppId> changed =
        table_.reconfigure(change.virtual_pfs, change.most_virtual_pfs, now);
    if (change.make_scheduler) {
      make_scheduler_ = std::move(change.make_scheduler);
      ++generation_;
      for (Lane& lane : lanes_) replace(lane, now);
    } else {
      set_shares(changed, now);
    }
  }
  // Somebody has to ask the scheduler what may go now.
  wake_up_(0);
}

void Dispatcher::replace(Lane& lane, TimePoint now) {
  std::vector<IoRequest*> waiting;
  while (IoRequest* const request = lane.scheduler->any_queued()) {
    lane.scheduler->withdraw(*request, now);
    waiting.push_back(request);
  }
  std::ranges::sort(waiting, {}, [](const IoRequest* request) {
    return std::pair(request->arrival, request->order);
  });

  std::unique_ptr<Scheduler> scheduler = make_scheduler_();
  scheduler->occupy(lane.scheduler->load());
  lane.scheduler = std::move(scheduler);
  // A removed one may still have requests, so the scheduler must know it.
  for (const AppId app : table_.everybody()) {
    if (table_[app].removed) (void)lane.scheduler->set_share(app, {}, now);
  }
  set_shares(lane, table_.everybody(), now);
  for (IoRequest* request : waiting) lane.scheduler->enqueue(*request, now);
}

void Dispatcher::complete(PendingIo& io, Cost cost, TimePoint now) {
  stage::VirtualPfs& pfs = table_[io.app];
  pfs.outstanding_bytes -= io.size;
  --pfs.outstanding_requests;
  clients_.finished(io);
  if (io.generation == generation_) return scheduler_of(io).complete(io, cost, now);
  scheduler_of(io).vacate(io.cost);  // an earlier scheduler let it go
}

void Dispatcher::arrive(PendingIo& io, TimePoint now) {
  if (io.size_is_estimated) {
    io.size = table_[io.app].read_yield.expected(io.asked);
    io.cost = cost_model_.cost(io.kind, io.size);
  }
  io.state = PendingIo::State::queued;
  io.lane = lane_of(io, now);
  table_[io.app].queued_bytes += io.size;
  clients_.queued(io, now);
  scheduler_of(io).enqueue(io, now);
}

// Out of the scheduler without having been let go.
void Dispatcher::leave_queue(PendingIo& io, TimePoint now) {
  table_[io.app].queued_bytes -= io.size;
  scheduler_of(io).withdraw(io, now);
}

// To the worker that its session belongs to.
void Dispatcher::hand_over(PendingIo& io, PendingIo::State state) {
  io.state = state;
  std::vector<PendingIo*>& inbox = inboxes_[io.worker];
  if (inbox.empty()) to_wake_.push_back(io.worker);
  inbox.push_back(&io);
}

void Dispatcher::end(const Turn::End& end, TimePoint now) {
  PendingIo& io = *end.io;
  stage::VirtualPfs& pfs = table_[io.app];
  if (!end.refused) {
    ++pfs.done_requests;
    pfs.done_bytes += Bytes{end.bytes};
    if (end.failed) ++pfs.failed_requests;
  }
  if (io.state == PendingIo::State::given_up) return;
  VPFS_ASSERT(io.state == PendingIo::State::outstanding);
  const Bytes moved = {end.bytes};
  const Cost cost = cost_model_.cost(io.kind, moved);
  Scheduler& scheduler = scheduler_of(io);
  if (!end.refused) {
    pfs.service.record(now - io.sent);
    if (io.size_is_estimated && !end.failed) pfs.read_yield.learn(io.asked, moved);
    if (cost > io.cost && moved > io.size) {
      scheduler.charge_more(io, {.cost = cost - io.cost, .size = moved - io.size}, now);
    }
  }
  complete(io, std::min(cost, io.cost), now);
}

std::optional<TimePoint> Dispatcher::release_all(TimePoint now) {
  TimePoint until = kNever;
  for (Lane& lane : lanes_) until = std::min(until, release_all(lane, now));
  refuse_excess(now);
  return until == kNever ? std::nullopt : std::optional(until);
}

void Dispatcher::refuse_excess(TimePoint now) {
  while (stage::Held* const held = clients_.take_excess(now)) {
    auto* const io = static_cast<PendingIo*>(held);
    if (table_[io->app].excess_requests++ == 0) tell_excess(*io, now);
    leave_queue(*io, now);
    hand_over(*io, PendingIo::State::excess);
  }
}

void Dispatcher::tell_excess(const PendingIo& io, TimePoint now) {
  const stage::ClientLimits::Report client = clients_.report(io.client, now);
  spdlog::warn(
      "virtual PFS {}: it and others that wait have {} of the {} connections of client {}, or "
      "more: "
      "requests beyond that are sent back for a while (limits.max_held_per_client)",
      table_[io.app].name, client.allowance.value_or(0), client.connections, client.name);
}

TimePoint Dispatcher::release_all(Lane& lane, TimePoint now) {
  for (;;) {
    const Scheduler::Decision decision = lane.scheduler->next(now);
    if (decision.request == nullptr) return decision.until;
    auto& io = static_cast<PendingIo&>(*decision.request);
    stage::VirtualPfs& pfs = table_[io.app];
    pfs.queued_bytes -= io.size;
    pfs.outstanding_bytes += io.size;
    ++pfs.outstanding_requests;
    pfs.wait.record(now - io.arrival);
    io.generation = generation_;
    clients_.dispatched(io, now);
    hand_over(io, PendingIo::State::released);
  }
}

std::optional<TimePoint> Dispatcher::turn(std::size_t worker, const Turn& turn, TimePoint now,
                                          std::vector<PendingIo*>& released) {
  std::optional<TimePoint> until;
  std::vector<std::size_t> wake;
  {
    const std::lock_guard lock(mutex_);
    now = advance(now);
    for (const Turn::End& each : turn.ended) end(each, now);
    for (PendingIo* io : turn.arrived) arrive(*io, now);
    until = release_all(now);
    for (PendingIo* io : inboxes_[worker]) {
      if (io->state == PendingIo::State::released) io->state = PendingIo::State::outstanding;
    }
    released.insert(released.end(), inboxes_[worker].begin(), inboxes_[worker].end());
    inboxes_[worker].clear();
    std::erase(to_wake_, worker);
    if (!to_wake_.empty()) wake = std::exchange(to_wake_, {});
  }
  for (const std::size_t other : wake) wake_up_(other);
  return until;
}

void Dispatcher::give_slot_back(PendingIo& io, TimePoint now) {
  complete(io, io.cost, now);
}

void Dispatcher::abandon(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  now = advance(now);
  switch (io.state) {
    case PendingIo::State::parked:
    case PendingIo::State::given_up:
      break;
    case PendingIo::State::excess:
      std::erase(inboxes_[io.worker], &io);
      break;
    case PendingIo::State::queued:
      clients_.withdrawn(io);
      leave_queue(io, now);
      break;
    case PendingIo::State::released:
      std::erase(inboxes_[io.worker], &io);
      [[fallthrough]];
    case PendingIo::State::outstanding:
      give_slot_back(io, now);
      break;
  }
  io.state = PendingIo::State::parked;
}

bool Dispatcher::take_back(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  now = advance(now);
  if (io.state == PendingIo::State::parked) return true;
  if (io.state != PendingIo::State::queued) return false;
  clients_.withdrawn(io);
  leave_queue(io, now);
  io.state = PendingIo::State::parked;
  return true;
}

bool Dispatcher::give_up_slot(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  now = advance(now);
  if (io.state != PendingIo::State::outstanding) return false;
  ++table_[io.app].given_up_requests;
  give_slot_back(io, now);
  io.state = PendingIo::State::given_up;
  return true;
}

stage::ClientId Dispatcher::join_client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return clients_.join(name);
}

void Dispatcher::leave_client(stage::ClientId client) {
  const std::lock_guard lock(mutex_);
  clients_.leave(client);
}

void Dispatcher::count_refused(AppId app) {
  const std::lock_guard lock(mutex_);
  ++table_[app].refused_requests;
}

void Dispatcher::inspect(TimePoint now, const std::function<void(const Books&)>& visit) {
  const std::lock_guard lock(mutex_);
  visit({.table = table_, .lanes = lanes_, .clients = clients_, .now = advance(now)});
}

std::size_t Dispatcher::outstanding() {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.scheduler->outstanding();
  return sum;
}

std::size_t Dispatcher::queued() {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.scheduler->queued();
  return sum;
}

}  // namespace vpfs::proxy
