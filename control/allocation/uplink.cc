#include "control/allocation/uplink.h"

#include <algorithm>
#include <tuple>

#include "control/allocation/cap_ledger.h"

namespace vpfs::allocation {

void Uplink::connect() {
  for (Row& row : rows_) row.is_told = false;
}

Uplink::Taken Uplink::on_cycle(const ParentCycle& cycle, TimePoint now) {
  on_turn(now);
  if (!cycle.complete) return Taken::asked;
  if (std::tie(cycle.term, cycle.sequence) <= std::tie(term_, sequence_)) return Taken::outdated;
  if (cycle.term != term_) policy_.forget_totals();
  term_ = cycle.term;
  sequence_ = cycle.sequence;
  if (cycle.lease <= Duration::zero()) {
    end();
    return Taken::applied;
  }
  lease_end_ = now + cycle.lease;
  state_.set_caps_end(*lease_end_);
  ++cycles_;
  policy_.begin_parent();
  for (const FlowGrant& each : cycle.grants) {
    if (each.flow >= rows_.size() || !rows_[each.flow].is_told) continue;
    Row& row = rows_[each.flow];
    const std::optional<LiveJob> job = state_.live_job(each.flow);
    if (!job || job->generation != row.generation) continue;  // it has gone since the last report
    policy_.give(job->name, each.grant);
    row.cycle = cycles_;
    for (const Resource& resource : kResources) {
      row.caps.*resource.amount = (each.grant.*resource.grant).value_or(0);
    }
  }
  set_capacity();
  return Taken::applied;
}

void Uplink::on_turn(TimePoint now) {
  if (lease_end_ && now >= *lease_end_) end();
}

void Uplink::end() {
  lease_end_.reset();
  ++cycles_;
  policy_.end_parent();
  set_capacity();
}

// Counts live jobs only. The parent releases what it gave the others when they are reported.
void Uplink::set_capacity() {
  Amounts sum;
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].cycle != cycles_) continue;
    for (const Resource& resource : kResources) {
      sum.*resource.amount = add_saturating(sum.*resource.amount, rows_[i].caps.*resource.amount);
    }
  }
  state_.set_capacity(sum);
}

Uplink::Report Uplink::report() {
  announced_.clear();
  flows_.clear();
  ++reports_;
  state_.for_each_job([this](const LiveJob& job) { tell(job); });
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].report == reports_) continue;
    if (rows_[i].is_told) flows_.push_back({.flow = i, .ended = true});
    rows_[i] = {};
  }
  set_capacity();
  return {.pending = !state_.settled(), .announced = announced_, .flows = flows_};
}

void Uplink::tell(const LiveJob& job) {
  if (job.number >= rows_.size()) rows_.resize(std::size_t{job.number} + 1);
  Row& row = rows_[job.number];
  if (row.generation != job.generation) {
    if (row.is_told) flows_.push_back({.flow = job.number, .ended = true});
    row = {.generation = job.generation};
  }
  row.report = reports_;
  const bool is_new = !row.is_told;
  const std::uint32_t stages = std::max(job.stages, std::uint32_t{1});
  if (is_new || row.weight != job.weight || row.stages != stages) {
    announced_.push_back({.flow = job.number,
                          .generation = job.generation,
                          .job = job.name,
                          .weight = job.weight,
                          .stages = stages});
  }
  if (is_new || row.totals != job.totals) {
    flows_.push_back({.flow = job.number,
                      .arrived_bytes = job.totals.arrived.bytes,
                      .arrived_requests = job.totals.arrived.operations,
                      .metadata_operations = job.totals.arrived.metadata_operations,
                      .done_cost = job.totals.done,
                      .limited = job.totals.limited});
  }
  row.is_told = true;
  row.weight = job.weight;
  row.stages = stages;
  row.totals = job.totals;
}

}  // namespace vpfs::allocation
