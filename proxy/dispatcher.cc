#include "proxy/dispatcher.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/check.h"

namespace vpfs::proxy {

Dispatcher::Dispatcher(std::unique_ptr<Scheduler> scheduler, CostModel cost_model,
                       VirtualPfsTable table, std::size_t workers, WakeUp wake_up, TimePoint now)
    : wake_up_(std::move(wake_up)),
      cost_model_(cost_model),
      scheduler_(std::move(scheduler)),
      table_(std::move(table)),
      inboxes_(workers) {
  table_.start(now);
  set_shares(table_.everybody(), now);
}

// The time that the scheduler sees never goes back.
TimePoint Dispatcher::advance(TimePoint now) {
  return last_now_ = std::max(last_now_, now);
}

AppId Dispatcher::app_of(const Classifier::Match& match, TimePoint now) {
  const std::lock_guard lock(mutex_);
  now = advance(now);
  const VirtualPfsTable::Found found = table_.find_or_make(match, now);
  if (found.made) set_shares({found.app}, now);
  return found.app;
}

// Promises that fit together may not fit beside those that they replace, so those that were refused
// are asked for again when all others are in force.
void Dispatcher::set_shares(const std::vector<AppId>& apps, TimePoint now) {
  std::vector<AppId> refused;
  for (const AppId app : apps) {
    VirtualPfs& pfs = table_[app];
    pfs.refused_promise.clear();
    if (pfs.removed) {
      scheduler_->remove(app, now);
    } else if (!scheduler_->set_share(app, pfs.share_to_come(now), now)) {
      refused.push_back(app);
    }
  }
  for (const AppId app : refused) {
    VirtualPfs& pfs = table_[app];
    const Result<void> promised = scheduler_->set_share(app, pfs.share_to_come(now), now);
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
    const std::vector<AppId> changed =
        table_.reconfigure(change.virtual_pfs, change.most_virtual_pfs, now);
    if (change.scheduler != nullptr) {
      replace(std::move(change.scheduler), now);
    } else {
      set_shares(changed, now);
    }
  }
  // Somebody has to ask the scheduler what may go now.
  wake_up_(0);
}

void Dispatcher::replace(std::unique_ptr<Scheduler> scheduler, TimePoint now) {
  std::vector<IoRequest*> waiting;
  while (IoRequest* const request = scheduler_->any_queued()) {
    scheduler_->withdraw(*request, now);
    waiting.push_back(request);
  }
  std::ranges::sort(waiting, {}, [](const IoRequest* request) {
    return std::pair(request->arrival, request->order);
  });

  scheduler->occupy(scheduler_->load());
  scheduler_ = std::move(scheduler);
  ++generation_;
  // A removed one may still have requests, so the scheduler must know it.
  for (const AppId app : table_.everybody()) {
    if (table_[app].removed) (void)scheduler_->set_share(app, {}, now);
  }
  set_shares(table_.everybody(), now);
  for (IoRequest* request : waiting) scheduler_->enqueue(*request, now);
}

void Dispatcher::complete(PendingIo& io, Cost cost, TimePoint now) {
  VirtualPfs& pfs = table_[io.app];
  pfs.outstanding_bytes -= io.size;
  --pfs.outstanding_requests;
  if (io.generation == generation_) return scheduler_->complete(io, cost, now);
  scheduler_->vacate(io.cost);  // an earlier scheduler let it go
}

void Dispatcher::arrive(PendingIo& io, TimePoint now) {
  io.state = PendingIo::State::queued;
  table_[io.app].queued_bytes += io.size;
  scheduler_->enqueue(io, now);
}

void Dispatcher::end(const Turn::End& end, TimePoint now) {
  PendingIo& io = *end.io;
  VirtualPfs& pfs = table_[io.app];
  if (!end.refused) {
    ++pfs.done_requests;
    pfs.done_bytes += Bytes{end.bytes};
    if (end.failed) ++pfs.failed_requests;
  }
  if (io.state == PendingIo::State::given_up) return;
  VPFS_ASSERT(io.state == PendingIo::State::outstanding);
  if (!end.refused) pfs.service.record(now - io.sent);
  const Cost cost = cost_model_.cost(io.kind, Bytes{end.bytes});
  complete(io, std::min(cost, io.cost), now);
}

std::optional<TimePoint> Dispatcher::release_all(TimePoint now) {
  for (;;) {
    const Scheduler::Decision decision = scheduler_->next(now);
    if (decision.request == nullptr) {
      if (decision.until == kNever) return std::nullopt;
      return decision.until;
    }
    auto& io = static_cast<PendingIo&>(*decision.request);
    VirtualPfs& pfs = table_[io.app];
    pfs.queued_bytes -= io.size;
    pfs.outstanding_bytes += io.size;
    ++pfs.outstanding_requests;
    pfs.wait.record(now - io.arrival);
    io.generation = generation_;
    io.state = PendingIo::State::released;
    std::vector<PendingIo*>& inbox = inboxes_[io.worker];
    if (inbox.empty()) to_wake_.push_back(io.worker);
    inbox.push_back(&io);
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
    for (PendingIo* io : inboxes_[worker]) io->state = PendingIo::State::outstanding;
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
    case PendingIo::State::queued:
      table_[io.app].queued_bytes -= io.size;
      scheduler_->withdraw(io, now);
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
  table_[io.app].queued_bytes -= io.size;
  scheduler_->withdraw(io, now);
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

void Dispatcher::count_refused(AppId app) {
  const std::lock_guard lock(mutex_);
  ++table_[app].refused_requests;
}

void Dispatcher::inspect(TimePoint now, const std::function<void(const Books&)>& visit) {
  const std::lock_guard lock(mutex_);
  visit({.table = table_, .scheduler = *scheduler_, .now = advance(now)});
}

std::size_t Dispatcher::outstanding() {
  const std::lock_guard lock(mutex_);
  return scheduler_->outstanding();
}

std::size_t Dispatcher::queued() {
  const std::lock_guard lock(mutex_);
  return scheduler_->queued();
}

}  // namespace vpfs::proxy
