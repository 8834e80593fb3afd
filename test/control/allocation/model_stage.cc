#include "test/control/allocation/model_stage.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::allocation {

void SentReport::deliver(CycleState& state, StageId stage, TimePoint now) const {
  for (const auto& [name, job] : announced) {
    FlowName flow = name;
    flow.job = job;
    state.on_flow(stage, flow);
  }
  const AnswerResult result = state.on_report(stage, head, counters, now);
  VPFS_ASSERT(result == AnswerResult::taken);
}

void ModelStage::change_flows(std::mt19937_64& random) {
  const std::uint32_t number = static_cast<std::uint32_t>(random() % kFlows);
  Flow& flow = flows_[number];
  if (flow.exists) allocations_.forget(AppId{number});
  flow.exists = !flow.exists || random() % 2 == 0;
  if (!flow.exists) return;
  ++flow.generation;
  flow.done = 0;
  flow.job.clear();
  const auto has_job = [this](const std::string& job) {
    return std::ranges::any_of(flows_,
                               [&](const Flow& other) { return other.exists && other.job == job; });
  };
  std::string job;
  do {
    job = "job" + std::to_string(random() % kJobs);
  } while (has_job(job));
  flow.job = job;
}

ModelStage::Applied ModelStage::apply(const SentCycle& cycle, const Told& told, TimePoint now) {
  if (!cycle.head.complete) return Applied::nothing;
  if (allocations_.refuses({.term = cycle.term, .sequence = cycle.head.sequence})) {
    return Applied::outdated;
  }
  if (refuses_until > now) return Applied::refused;
  allocations_.begin({.epoch = {.term = cycle.term, .sequence = cycle.head.sequence},
                      .lease = cycle.head.lease,
                      .complete = true},
                     now);
  for (const FlowGrant& each : cycle.grants) {
    if (each.flow >= kFlows || !told[each.flow]) continue;
    const Flow& flow = flows_[each.flow];
    if (!flow.exists || flow.generation != *told[each.flow]) continue;
    Limits limits;
    if (each.grant.bytes) limits.bytes = BytesPerSecond{*each.grant.bytes};
    limits.operations = each.grant.operations;
    (void)allocations_.set_limits(AppId{each.flow}, limits);
  }
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    if (!allocations_.limits(AppId{i}).any() || allocations_.was_mentioned(AppId{i})) continue;
    (void)allocations_.set_limits(AppId{i}, {});
  }
  return Applied::applied;
}

SentReport ModelStage::answer(const SentCycle& cycle, Told& told, bool adds,
                              std::mt19937_64& random) {
  const stage::Epoch epoch = {.term = cycle.term, .sequence = cycle.head.sequence};
  SentReport report = {.head = {.term = cycle.term,
                                .sequence = cycle.head.sequence,
                                .applied = !cycle.head.complete || allocations_.epoch() == epoch},
                       .announced = {},
                       .counters = {}};
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    Flow& flow = flows_[i];
    if (told[i] && (!flow.exists || *told[i] != flow.generation)) {
      report.counters.push_back({.flow = i, .ended = true});
      told[i].reset();
    }
    if (!flow.exists) continue;
    if (!told[i]) {
      report.announced.push_back({{.flow = i, .generation = flow.generation}, flow.job});
      told[i] = flow.generation;
    }
    if (adds) flow.done += random() % 100;
    report.counters.push_back({.flow = i, .arrived_bytes = flow.done, .done_cost = flow.done});
  }
  return report;
}

bool ModelStage::end_lease(TimePoint now) {
  if (!allocations_.in_force() || allocations_.lease_end() > now) return false;
  for (std::uint32_t i = 0; i < kFlows; ++i) (void)allocations_.set_limits(AppId{i}, {});
  allocations_.end();
  return true;
}

Amounts ModelStage::caps() const {
  Amounts caps;
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    const Limits limits = allocations_.limits(AppId{i});
    if (limits.bytes) caps.bytes += limits.bytes->count;
    if (limits.operations) caps.operations += *limits.operations;
  }
  return caps;
}

}  // namespace vpfs::allocation
