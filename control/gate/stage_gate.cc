#include "control/gate/stage_gate.h"

#include <spdlog/spdlog.h>

namespace vpfs::control {
namespace {
// How many virtual PFSes are examined, copied or retired per lock.
constexpr std::size_t kRows = stage::DenseRows<stage::Counters>::kBlock;
constexpr std::size_t kRetired = 4;
}  // namespace

StageGate::StageGate(const stage::Config& config, TimePoint now) : stage_(config, now) {
  tell(stage_.take_notices());
}

stage::Place StageGate::find(const stage::Classifier::Match& match, TimePoint now,
                             std::span<const stage::RuleConfig> rules) {
  stage::Place place;
  act(now, [&](stage::Stage& stage, TimePoint at) { place = stage.find(match, at, rules); });
  return place;
}

void StageGate::reconfigure(const stage::Config& config, TimePoint now) {
  act(now, [&](stage::Stage& stage, TimePoint at) { stage.reconfigure(config, at); });
  ask_again();
}

void StageGate::bypass(bool on, TimePoint now) {
  act(now, [&](stage::Stage& stage, TimePoint at) {
    stage.bypass(on, at);
    bypassed_.store(on, std::memory_order_relaxed);
  });
  ask_all_again();
}

void StageGate::record(stage::Recorder* recorder, TimePoint now) {
  inspect(now, [&](stage::Stage& stage, TimePoint) {
    stage.record(recorder);
    recording_.store(recorder == nullptr ? 0 : recorder->settings().number,
                     std::memory_order_relaxed);
  });
}

std::optional<std::uint32_t> StageGate::number_of(const stage::Origin& origin,
                                                  std::uint32_t recording) {
  const std::lock_guard lock(mutex_);
  stage::Recorder* const recorder = stage_.recorder();
  if (recorder == nullptr || recorder->settings().number != recording) return std::nullopt;
  return recorder->number_of(origin);
}

void StageGate::retire_idle(TimePoint now) {
  for (bool more = true; more;) {
    inspect(now, [&](stage::Stage& stage, TimePoint at) {
      more = stage.has_idle() && forgot_numbers();
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
      if (found && looked + kRows >= rows) forget_numbers();
    });
    give_way();
  }
  if (found) ask_all_again();
}

std::size_t StageGate::rows_at_once(TimePoint now) {
  std::size_t rows = 0;
  inspect(now, [&](stage::Stage& stage, TimePoint) { rows = kRows / stage.queues_of_each(); });
  return std::max<std::size_t>(rows, 1);
}

stage::CycleAnswer StageGate::allocate(const stage::Cycle& cycle,
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
  ask_again();
  return answer;
}

void StageGate::copy_counters(TimePoint now, std::vector<stage::CounterRow>& rows) {
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

void StageGate::tell(const std::vector<std::string>& notices) {
  for (const std::string& each : notices) spdlog::warn("{}", each);
}

bool StageGate::set_hold(Duration hold, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.set_hold(hold, advance(now));
}

bool StageGate::refuse(stage::Held& io, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return stage_.refuse(io, advance(now));
}

void StageGate::count_refused(const stage::Place& place, IoKind kind, Bytes size, TimePoint now) {
  const std::lock_guard lock(mutex_);
  stage_.count_refused(place, kind, size, advance(now));
}

stage::ClientId StageGate::join_client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return stage_.join_client(name);
}

void StageGate::leave_client(stage::ClientId client) {
  const std::lock_guard lock(mutex_);
  stage_.leave_client(client);
}

std::size_t StageGate::outstanding() {
  const std::lock_guard lock(mutex_);
  return stage_.outstanding();
}

std::size_t StageGate::queued() {
  const std::lock_guard lock(mutex_);
  return stage_.queued();
}

}  // namespace vpfs::control
