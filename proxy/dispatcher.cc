#include "proxy/dispatcher.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

namespace vpfs::proxy {
namespace {
// How many virtual PFSes are examined, copied or retired per lock.
constexpr std::size_t kRows = stage::DenseRows<stage::Counters>::kBlock;
constexpr std::size_t kRetired = 4;
}  // namespace

Dispatcher::Dispatcher(const stage::Config& config, std::size_t workers, WakeUp wake_up,
                       TimePoint now)
    : wake_up_(std::move(wake_up)), stage_(config, now), inboxes_(workers), epochs_(workers) {
  tell(stage_.take_notices());
}

// The stage's time never goes back.
TimePoint Dispatcher::advance(TimePoint now) {
  return last_now_ = std::max(last_now_, now);
}

stage::Place Dispatcher::find(const stage::Classifier::Match& match, TimePoint now,
                              std::span<const stage::RuleConfig> rules) {
  stage::Place place;
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    place = stage_.find(match, advance(now), rules);
    notices = stage_.take_notices();
  }
  tell(notices);
  return place;
}

void Dispatcher::reconfigure(const stage::Config& config, TimePoint now) {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    stage_.reconfigure(config, advance(now));
    notices = stage_.take_notices();
  }
  tell(notices);
  // Some worker has to ask the scheduler what may go now.
  wake_up_(0);
}

void Dispatcher::bypass(bool on, TimePoint now) {
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    stage_.bypass(on, advance(now));
    bypassed_.store(on, std::memory_order_relaxed);
    notices = stage_.take_notices();
  }
  tell(notices);
  for (std::size_t worker = 0; worker < inboxes_.size(); ++worker) wake_up_(worker);
}

// Puts the request into the inbox of the worker that owns its session.
void Dispatcher::hand_over(stage::Held& held) {
  auto& io = static_cast<PendingIo&>(held);
  std::vector<PendingIo*>& inbox = inboxes_[io.worker];
  if (inbox.empty()) to_wake_.push_back(io.worker);
  inbox.push_back(&io);
}

Dispatcher::Next Dispatcher::turn(std::size_t worker, const Turn& turn, TimePoint now,
                                  std::vector<PendingIo*>& released) {
  Next next;
  std::vector<std::size_t> wake;
  std::vector<std::string> notices;
  {
    const std::lock_guard lock(mutex_);
    now = advance(now);
    for (const Turn::End& each : turn.ended) {
      stage_.end(*each.io, {.moved = {each.bytes}, .failed = each.failed, .refused = each.refused},
                 now);
    }
    for (PendingIo* io : turn.parked) stage_.park(*io, now);
    for (PendingIo* io : turn.arrived) stage_.arrive(*io, now);
    const TimePoint until = stage_.release(now, let_go_);
    if (until != kNever) next.until = until;
    for (stage::Held* io : let_go_) hand_over(*io);
    let_go_.clear();
    for (PendingIo* io : inboxes_[worker]) stage::Stage::took_over(*io);
    released.insert(released.end(), inboxes_[worker].begin(), inboxes_[worker].end());
    inboxes_[worker].clear();
    std::erase(to_wake_, worker);
    epochs_[worker] = turn.epoch;
    next.epoch = epoch_;
    if (!to_wake_.empty()) wake = std::exchange(to_wake_, {});
    notices = stage_.take_notices();
  }
  for (const std::size_t other : wake) wake_up_(other);
  tell(notices);
  return next;
}

bool Dispatcher::everybody_knows_the_epoch() const {
  return std::ranges::all_of(epochs_, [this](std::uint64_t each) { return each == epoch_; });
}

void Dispatcher::retire_idle(TimePoint now) {
  for (bool more = true; more;) {
    inspect(now, [&](stage::Stage& stage, TimePoint at) {
      more = stage.has_idle() && everybody_knows_the_epoch();
      if (more) stage.retire(kRetired, at);
    });
    give_way();
  }
  std::size_t rows = 0;
  inspect(now, [&](stage::Stage& stage, TimePoint) {
    if (!stage.has_idle()) rows = stage.rows();
  });
  bool found = false;
  for (std::size_t looked = 0; looked < rows; looked += kRows) {
    inspect(now, [&](stage::Stage& stage, TimePoint at) {
      stage.find_idle(kRows, at);
      found = stage.has_idle();
      if (found && looked + kRows >= rows) ++epoch_;
    });
    give_way();
  }
  if (!found) return;
  for (std::size_t worker = 0; worker < inboxes_.size(); ++worker) wake_up_(worker);
}

std::size_t Dispatcher::rows_at_once(TimePoint now) {
  std::size_t rows = 0;
  inspect(now, [&](stage::Stage& stage, TimePoint) { rows = kRows / stage.queues_of_each(); });
  return std::max<std::size_t>(rows, 1);
}

stage::CycleAnswer Dispatcher::allocate(const stage::Cycle& cycle,
                                        std::span<const stage::Allocation> allocations,
                                        TimePoint now) {
  const std::lock_guard one_cycle(cycle_mutex_);
  stage::CycleAnswer answer;
  std::size_t rows = 0;
  inspect(now, [&](stage::Stage& stage, TimePoint at) {
    answer.result = stage.begin_cycle(cycle, allocations, at);
    rows = stage.rows();
  });
  if (answer.result != stage::CycleResult::applied) return answer;
  const std::size_t at_once = rows_at_once(now);
  while (!allocations.empty()) {
    const auto some = allocations.first(std::min(at_once, allocations.size()));
    inspect(now, [&](stage::Stage& stage, TimePoint at) {
      stage.allocate_some(cycle.epoch, some, at, answer.unknown);
    });
    allocations = allocations.subspan(some.size());
    give_way();
  }
  for (std::size_t row = 0; cycle.complete && row < rows; give_way()) {
    const std::size_t first = row;
    inspect(now, [&](stage::Stage& stage, TimePoint at) {
      row = stage.lift_unmentioned(cycle.epoch, first, at_once, at);
    });
    if (row == first) break;  // the lease has ended
  }
  wake_up_(0);
  return answer;
}

bool Dispatcher::set_hold(Duration hold, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.set_hold(hold, advance(now));
}

void Dispatcher::copy_counters(TimePoint now, std::vector<stage::CounterRow>& rows) {
  std::size_t count = 0;
  inspect(now, [&](stage::Stage& stage, TimePoint) { count = stage.rows(); });
  const std::size_t at_once = rows_at_once(now);
  rows.resize(count);
  for (std::size_t first = 0; first < count; first += at_once) {
    const auto block = std::span(rows).subspan(first, std::min(at_once, count - first));
    inspect(now, [&](stage::Stage& stage, TimePoint at) { stage.copy_counters(first, block, at); });
    give_way();
  }
}

void Dispatcher::tell(const std::vector<std::string>& notices) {
  for (const std::string& each : notices) spdlog::warn("{}", each);
}

void Dispatcher::abandon(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (io.state == PendingIo::State::excess || io.state == PendingIo::State::released) {
    std::erase(inboxes_[io.worker], &io);
  }
  stage_.abandon(io, advance(now));
}

bool Dispatcher::take_back(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.take_back(io, advance(now));
}

bool Dispatcher::refuse(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.refuse(io, advance(now));
}

bool Dispatcher::give_up_slot(PendingIo& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.give_up_slot(io, advance(now));
}

void Dispatcher::count_refused(const stage::Place& place, IoKind kind, Bytes size, TimePoint now) {
  const std::lock_guard lock(mutex_);
  stage_.count_refused(place, kind, size, advance(now));
}

stage::ClientId Dispatcher::join_client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return stage_.join_client(name);
}

void Dispatcher::leave_client(stage::ClientId client) {
  const std::lock_guard lock(mutex_);
  stage_.leave_client(client);
}

std::size_t Dispatcher::outstanding() {
  const std::lock_guard lock(mutex_);
  return stage_.outstanding();
}

std::size_t Dispatcher::queued() {
  const std::lock_guard lock(mutex_);
  return stage_.queued();
}

}  // namespace vpfs::proxy
