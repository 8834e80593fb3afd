#include "control/allocation/cycle_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "schedulers/share.h"

namespace vpfs::allocation {
namespace {

constexpr std::uint32_t kMostStages = 1U << 16U;  // below an aggregator

// The part of one cycle in what came in several, rounded up.
std::uint64_t of_one(std::uint64_t amount, std::uint64_t cycles) {
  return amount / cycles + (amount % cycles == 0 ? 0 : 1);
}

void add(Amounts& to, const Amounts& difference, std::uint64_t cycles) {
  to.bytes = add_saturating(to.bytes, of_one(difference.bytes, cycles));
  to.operations = add_saturating(to.operations, of_one(difference.operations, cycles));
  to.metadata_operations =
      add_saturating(to.metadata_operations, of_one(difference.metadata_operations, cycles));
}

void add(QueueTimes& to, const QueueTimes& difference) {
  const auto add_time = [](Microseconds& sum, Microseconds more) {
    sum = Microseconds(add_saturating(sum.count(), more.count()));
  };
  add_time(to.limited, difference.limited);
  add_time(to.present, difference.present);
  add_time(to.crowded, difference.crowded);
  add_time(to.without_queue, difference.without_queue);
}

}  // namespace

CycleState::CycleState(const CycleSettings& settings, std::unique_ptr<AllocationPolicy> policy,
                       std::uint64_t term)
    : settings_(settings), policy_(std::move(policy)), term_(term) {
  VPFS_ASSERT(settings_.lease > Duration::zero() && settings_.transit >= Duration::zero());
  VPFS_ASSERT(settings_.period > Duration::zero() && settings_.deadline >= Duration::zero());
}

void CycleState::use(std::unique_ptr<AllocationPolicy> policy, const Amounts& capacity) {
  policy_ = std::move(policy);
  settings_.capacity = capacity;
}

void CycleState::set_term(std::uint64_t term) {
  VPFS_ASSERT(term > term_);
  term_ = term;
}

void CycleState::set_job(std::string_view name, std::optional<std::uint32_t> weight,
                         const Amounts& most) {
  std::uint32_t number = 0;
  Membership::Job& job = members_.find_or_make_job(name, number);
  job.is_configured = true;
  if (weight) weight = std::clamp(*weight, std::uint32_t{1}, Share::kMaxWeight);
  job.weight = weight;
  job.most = most;
  rows_are_stale_ = true;
}

void CycleState::remove_job(std::string_view name) {
  const std::optional<std::uint32_t> number = members_.find_job(name);
  if (!number) return;
  Membership::Job& job = members_.job(*number);
  job.is_configured = false;
  job.weight.reset();
  job.most = {};
  members_.drop_job_if_unused(*number);
  rows_are_stale_ = true;
}

bool CycleState::settled() const {
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    if (!ledgers_[i].is_used()) continue;
    if (ledgers_[i].sum() > settings_.capacity.*kResources[i].amount) return false;
  }
  return true;
}

Result<StageId> CycleState::join(std::string_view name, std::uint64_t incarnation, TimePoint now,
                                 const Abilities& abilities) {
  const std::uint32_t number = members_.find_or_make_stage(name);
  Stage& stage = members_.stages()[number];
  if (stage.status.connected) return fail(fmt::format("stage \"{}\" is connected already", name));
  if (stage.status.incarnation != incarnation || stage.caps_until == kNever) {
    for (const std::uint32_t pair : stage.pairs) {
      for (CapLedger& ledger : ledgers_) ledger.make_stale(pair);
    }
    if (!stage.pairs.empty()) stage.stale_until = stage.caps_until;
    stage.caps_until = kNever;
    stage.flows.clear();
    stage.reported_at = now;
    stage.cycles = 0;
    stage.lease = {};
  }
  stage.takes_caps = abilities.caps;
  stage.takes_metadata_caps = abilities.caps && abilities.metadata_caps;
  stage.lacks_caps = false;
  stage.status.incarnation = incarnation;
  stage.status.connected = true;
  stage.missed = 0;
  return StageId{number};
}

LiveJob CycleState::live(std::uint32_t number) const {
  const Membership::Job& job = members_.jobs()[number];
  LiveJob live = {.number = number,
                  .generation = job.generation,
                  .name = job.name,
                  .weight = job.weight.value_or(job.announced_weight),
                  .stages = job.stages,
                  .totals = job.totals};
  live.totals.limited += job.limited;
  return live;
}

CycleState::Stage& CycleState::connected(StageId stage) {
  VPFS_ASSERT(stage.index < members_.stages().size());
  Stage& found = members_.stages()[stage.index];
  VPFS_ASSERT(found.status.connected);
  return found;
}

const StageStatus& CycleState::status(StageId stage) const {
  VPFS_ASSERT(stage.index < members_.stages().size());
  return members_.stages()[stage.index].status;
}

void CycleState::leave(StageId id, TimePoint now) {
  Stage& stage = connected(id);
  if (stage.open && !stage.status.silent) --unanswered_;
  stage.open = {};
  for (const std::uint32_t pair : stage.pairs) {
    for (CapLedger& ledger : ledgers_) ledger.leave_open(pair);
    members_.pair(pair).flow = Membership::kNone;
    members_.pair(pair).has_ended = false;
  }
  for (Membership::Flow& flow : stage.flows) flow.pair = Membership::kNone;
  // A stage that was sent no lease is known for as long as others.
  stage.caps_until =
      now + settings_.transit + (stage.lease > Duration::zero() ? stage.lease : settings_.lease);
  stage.is_introduced = false;
  stage.is_pending = false;
  stage.has_ended = false;
  stage.status.connected = false;
  stage.status.late = false;
  stage.status.silent = false;
  rows_are_stale_ = true;
}

bool CycleState::on_flow(StageId id, const FlowName& name) {
  Stage& stage = connected(id);
  if (name.flow >= settings_.most_flows) {
    lie(stage, fmt::format("flow {} is above the largest number, {}", name.flow,
                           settings_.most_flows - 1));
    return false;
  }
  if (name.job.empty() || name.job.size() > kLongestName) {
    lie(stage, fmt::format("flow {} has a name of {} bytes", name.flow, name.job.size()));
    return false;
  }
  if (stage.flows.size() <= name.flow) stage.flows.resize(std::size_t{name.flow} + 1);
  Membership::Flow& flow = stage.flows[name.flow];
  std::uint32_t job_number = 0;
  Membership::Job& job = members_.find_or_make_job(name.job, job_number);
  job.announced_weight = std::clamp(name.weight, std::uint32_t{1}, Share::kMaxWeight);
  const std::uint32_t pair = members_.find_or_make_pair(job_number, id.index);
  for (CapLedger& ledger : ledgers_) ledger.resize(members_.pairs());
  if (flow.pair != Membership::kNone && flow.pair != pair) unbind(stage, flow);
  if (!flow.is_known || flow.generation != name.generation) {
    // After the first report only flows that have started since are new.
    stage.is_introduced ? flow.base.start_at_zero() : flow.base.clear();
  } else if (flow.job != job_number || flow.job_generation != job.generation) {
    // A process that takes over counts generations anew, and may give a number to another flow.
    flow.base.clear();
  }
  flow.is_known = true;
  flow.generation = name.generation;
  flow.job = job_number;
  flow.job_generation = job.generation;
  flow.announced = stage.reports;
  Membership::PairRecord& record = members_.pair(pair);
  if (record.flow != Membership::kNone) stage.flows[record.flow].pair = Membership::kNone;
  record.flow = name.flow;
  record.stages = std::clamp(name.stages, std::uint32_t{1}, kMostStages);
  record.has_ended = false;
  flow.pair = pair;
  rows_are_stale_ = true;
  return true;
}

void CycleState::lie(Stage& stage, std::string_view what) {
  ++stage.status.lies;
  stage.status.problem = what;
}

void CycleState::unbind(Stage& stage, Membership::Flow& flow) {
  Membership::PairRecord& pair = members_.pair(std::exchange(flow.pair, Membership::kNone));
  pair.flow = Membership::kNone;
  pair.has_ended = true;
  stage.has_ended = true;
  rows_are_stale_ = true;
}

// A stage that has ended a flow, or has given its number to another one, enforces no cap on it. Nor
// is one under way: the stage has answered all that it was sent before it said so.
void CycleState::release_ended(Stage& stage) {
  if (!std::exchange(stage.has_ended, false)) return;
  for (std::size_t i = stage.pairs.size(); i > 0; --i) {
    const std::uint32_t pair = stage.pairs[i - 1];
    if (!std::exchange(members_.pair(pair).has_ended, false)) continue;
    for (CapLedger& ledger : ledgers_) ledger.release(pair);
    forget_pair_if_clear(pair);
  }
}

void CycleState::forget_pair_if_clear(std::uint32_t pair) {
  if (members_.pair(pair).flow != Membership::kNone) return;
  for (const CapLedger& ledger : ledgers_) {
    if (ledger.own(pair) > 0 || ledger.has_stale(pair)) return;
  }
  for (CapLedger& ledger : ledgers_) ledger.release(pair);
  members_.forget_pair(pair);
}

AnswerResult CycleState::on_report(StageId id, const StageAnswer& answer,
                                   std::span<const FlowCounters> flows, TimePoint now) {
  Stage& stage = connected(id);
  if (answer.term != (stage.open ? stage.open.term : term_)) {
    ++stage.status.refused_answers;
    return AnswerResult::other_term;
  }
  if (!stage.open || stage.status.silent || answer.sequence != stage.open.sequence) {
    ++stage.status.refused_answers;
    return AnswerResult::unexpected;
  }
  const bool has_counters = stage.open.wants_report;
  if (stage.open.allocates && !answer.applied) {
    ++stage.status.not_applied;
    stage.status.problem = answer.problem;
  }
  close_open(stage, answer, now);
  if (has_counters) take_counters(stage, flows, now);
  if (!answer.pending) release_ended(stage);
  return AnswerResult::taken;
}

void CycleState::on_refusal(StageId id, std::uint64_t sequence, std::string_view why,
                            TimePoint now) {
  const std::uint64_t term = connected(id).open.term;
  (void)on_report(id, {.term = term, .sequence = sequence, .applied = false, .problem = why}, {},
                  now);
}

void CycleState::close_open(Stage& stage, const StageAnswer& answer, TimePoint now) {
  const bool allocates = stage.open.allocates;
  stage.open = {};
  --unanswered_;
  stage.missed = 0;
  stage.status.late = false;
  if (!allocates) return;
  if (answer.applied) {
    stage.caps_until = now + stage.lease;
    stage.is_pending = answer.pending;
  }
  // Backwards, since the last one moves into the place of one that is forgotten.
  for (std::size_t i = stage.pairs.size(); i > 0; --i) {
    const std::uint32_t pair = stage.pairs[i - 1];
    for (CapLedger& ledger : ledgers_) {
      if (!answer.applied) {
        ledger.withdraw(pair);
      } else if (answer.pending) {
        ledger.leave_open(pair);
      } else {
        ledger.settle(pair);
      }
    }
    if (answer.applied) forget_pair_if_clear(pair);
  }
}

void CycleState::take_counters(Stage& stage, std::span<const FlowCounters> flows, TimePoint now) {
  const std::uint64_t cycles = std::max(std::exchange(stage.cycles, 0U), 1U);
  const Duration elapsed = now - std::exchange(stage.reported_at, now);
  const auto seconds = static_cast<std::uint64_t>(elapsed / std::chrono::seconds(1)) + 2;
  const std::uint64_t most = settings_.most_each_second > ~std::uint64_t{0} / seconds
                                 ? ~std::uint64_t{0}
                                 : settings_.most_each_second * seconds;
  const auto longest = std::chrono::duration_cast<Microseconds>(elapsed);
  for (const std::uint32_t pair : stage.pairs) {
    members_.pair(pair).arrived = {};
    members_.pair(pair).limited = {};
  }
  FlowBase::Difference more;
  FlowBase::Lie found;
  // A report may have thousands of lies: the first one is told, all are counted.
  bool has_told = false;
  const auto is_first_lie = [&] {
    if (!std::exchange(has_told, true)) return true;
    ++stage.status.lies;
    return false;
  };
  for (const FlowCounters& each : flows) {
    const bool is_there =
        each.flow < stage.flows.size() && stage.flows[each.flow].pair != Membership::kNone;
    if (each.ended) {
      // The number may have been announced again just before; that one has not ended.
      if (is_there && stage.flows[each.flow].announced < stage.reports) {
        unbind(stage, stage.flows[each.flow]);
      }
      continue;
    }
    if (!is_there) {
      if (is_first_lie()) lie(stage, fmt::format("flow {} was not announced", each.flow));
      continue;
    }
    Membership::Flow& flow = stage.flows[each.flow];
    if (!flow.base.take(each, most, more, found)) {
      if (is_first_lie()) {
        lie(stage, fmt::format("flow {}: {} {} from {} to {}", each.flow, found.counter, found.what,
                               found.before, found.now));
      }
      continue;
    }
    Membership::PairRecord& pair = members_.pair(flow.pair);
    add(pair.arrived, more.arrived, cycles);
    // A stage counts a head's time when it goes, so it may be more than what has passed.
    more.times.limited = std::min(more.times.limited, longest);
    pair.limited = Duration(more.times.limited) / cycles;
    add(pair.times, more.times);
    pair.done = add_saturating(pair.done, more.done);
    Membership::Job& job = members_.job(pair.job);
    add(job.totals.arrived, more.arrived, 1);
    job.totals.done = add_saturating(job.totals.done, more.done);
    job.limited = std::max(job.limited, more.times.limited);
  }
  ++stage.reports;
  if (!std::exchange(stage.is_introduced, true)) rows_are_stale_ = true;
}

std::optional<TimePoint> CycleState::next_deadline() const {
  return unanswered_ > 0 ? deadline_ : std::nullopt;
}

void CycleState::on_deadline(TimePoint now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  for (Stage& stage : members_.stages()) {
    if (!stage.open || stage.status.silent) continue;
    stage.status.late = true;
    ++stage.status.late_cycles;
  }
}

}  // namespace vpfs::allocation
