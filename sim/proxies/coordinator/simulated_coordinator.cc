#include "sim/proxies/coordinator/simulated_coordinator.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::sim {
namespace {

// Rows of a stage's counters that are copied at once.
constexpr std::size_t kRows = 64;

Limits limits_of(const allocation::Grant& grant, const allocation::Abilities& abilities) {
  Limits limits;
  if (grant.bytes) limits.bytes = BytesPerSecond{*grant.bytes};
  limits.operations = grant.operations;
  if (abilities.metadata_caps) limits.metadata_operations = grant.metadata_operations;
  return limits;
}

}  // namespace

SimulatedCoordinator::SimulatedCoordinator(Engine& engine, const CoordinatorSettings& settings,
                                           std::vector<ProxiedServer*> servers,
                                           const allocation::Abilities& abilities)
    : engine_(engine), settings_(settings), abilities_(abilities), rows_(kRows) {
  VPFS_ASSERT(settings.policy != nullptr && settings.round_trip < settings.period);
  for (ProxiedServer* const server : servers) {
    StageLine& link = links_.emplace_back();
    link.server = server;
    link.name = fmt::format("s{}", links_.size() - 1);
  }
  begin_life();
  if (!settings_.away) return;
  engine_.at(TimePoint() + settings_.away->from, [this] { state_.reset(); });
  engine_.at(TimePoint() + settings_.away->until, [this] { begin_life(); });
}

void SimulatedCoordinator::begin_life() {
  allocation::CycleSettings settings{
      .period = settings_.period, .lease = settings_.lease, .transit = settings_.transit};
  if (settings_.policy->needs_caps) settings.capacity = settings_.amounts.capacity;
  if (term_ > 0) {
    settings.clear_from = TimePoint() + settings_.away->from + settings_.lease + settings_.transit;
  }
  state_.emplace(settings, settings_.policy->make(settings_.amounts), ++term_);
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    StageLine& link = links_[i];
    const auto id = state_->join(link.name, 1, engine_.now(), abilities_);
    VPFS_ASSERT(id.has_value());
    link.id = *id;
    std::ranges::fill(link.told, Told());
    by_id_.resize(std::max<std::size_t>(by_id_.size(), id->index + 1));
    by_id_[id->index] = i;
  }
  cycle();
}

void SimulatedCoordinator::cycle() {
  if (!state_) return;
  ++cycles_;
  under_way_.clear();
  for (const allocation::Outgoing& each : state_->begin_cycle(engine_.now())) {
    VPFS_ASSERT(!each.close);  // simulated stages answer
    StageLine& link = links_[by_id_[each.stage.index]];
    link.cycle = {.epoch = {.term = term_, .sequence = each.sequence},
                  .lease = each.lease,
                  .complete = each.complete};
    link.allocates = each.complete || !each.grants.empty();
    link.wants_report = each.want_report;
    link.grants.assign(each.grants.begin(), each.grants.end());
    under_way_.push_back(by_id_[each.stage.index]);
  }
  engine_.after(settings_.round_trip / 2, [this, term = term_] { deliver(term); });
  engine_.after(settings_.period, [this, term = term_] {
    if (term == term_) cycle();
  });
}

void SimulatedCoordinator::deliver(std::uint64_t term) {
  for (const std::uint32_t each : under_way_) {
    apply(links_[each]);
    if (term == term_) report(links_[each]);
  }
  const Duration back = settings_.round_trip - settings_.round_trip / 2;
  engine_.after(back, [this, term] { take_answers(term); });
}

void SimulatedCoordinator::apply(StageLine& link) {
  link.answer = {
      .term = link.cycle.epoch.term, .sequence = link.cycle.epoch.sequence, .applied = true};
  if (!link.allocates) return;
  allocations_.clear();
  for (const allocation::FlowGrant& each : link.grants) {
    const Told& told = link.told[each.flow];
    allocations_.push_back({.id = {.app = AppId{each.flow}, .generation = told.generation},
                            .limits = limits_of(each.grant, abilities_),
                            .elsewhere_total = each.grant.elsewhere_total});
  }
  link.answer.applied = link.server->allocate(link.cycle, allocations_);
}

void SimulatedCoordinator::report(StageLine& link) {
  link.new_flows.clear();
  link.counters.clear();
  if (!link.wants_report) return;
  stage::Stage& stage = link.server->stage();
  link.told.resize(stage.rows());
  for (std::size_t first = 0; first < stage.rows(); first += kRows) {
    const std::size_t count = stage.copy_counters(first, rows_, engine_.now());
    for (std::size_t i = 0; i < count; ++i) {
      const stage::CounterRow& row = rows_[i];
      const auto flow = static_cast<std::uint32_t>(first + i);
      VPFS_ASSERT(row.is_there);  // nothing is retired here
      const stage::Amount arrived = row.counters.arrived.all();
      Told& told = link.told[flow];
      stage::CapTime limited = told.limited;
      limited.advance(row.counters.held.limit, row.is_capped);
      const Told now{.announced = true,
                     .generation = row.id.generation,
                     .arrived = arrived.requests,
                     .done = row.counters.cost_done,
                     .limited = limited};
      if (!told.announced) link.new_flows.push_back(flow);
      if (now == std::exchange(told, now)) continue;
      link.counters.push_back(
          {.flow = flow,
           .arrived_bytes = arrived.bytes,
           .arrived_requests = arrived.requests,
           .metadata_operations = row.counters.arrived.of(IoKind::metadata).requests,
           .done_cost = row.counters.cost_done,
           .limited = std::chrono::duration_cast<allocation::Microseconds>(limited.total())});
    }
  }
}

void SimulatedCoordinator::take_answers(std::uint64_t term) {
  if (!state_ || term != term_) return;
  for (const std::uint32_t each : under_way_) {
    StageLine& link = links_[each];
    const stage::VirtualPfsTable& table = link.server->stage().virtual_pfs();
    for (const std::uint32_t flow : link.new_flows) {
      const stage::VirtualPfsInfo& info = *table[AppId{flow}].info;
      state_->on_flow(link.id, {.flow = flow,
                                .generation = link.told[flow].generation,
                                .job = info.name,
                                .weight = info.share().weight});
    }
    const auto result = state_->on_report(link.id, link.answer, link.counters, engine_.now());
    VPFS_ASSERT(result == allocation::AnswerResult::taken);
  }
}

}  // namespace vpfs::sim
