#include "control/coordinator/job_reports.h"

#include <utility>

namespace vpfs::coordinator {

const std::string* JobReports::find(std::uint32_t flow) const {
  return flow < told_.size() && told_[flow].is_announced ? &told_[flow].name : nullptr;
}

void JobReports::add(const allocation::CycleState& state, control::Flows& flows,
                     control::Report& report) {
  for (Told& told : told_) told.is_live = false;
  const auto end = [&report](std::uint32_t number) {
    control::FlowReport& ended = *report.add_flows();
    ended.set_flow(number);
    ended.set_ended(true);
  };
  state.for_each_job([&](const allocation::LiveJob& job) {
    if (told_.size() <= job.number) told_.resize(std::size_t{job.number} + 1);
    Told& told = told_[job.number];
    const bool is_same = told.is_announced && told.generation == job.generation;
    if (told.is_announced && !is_same) end(job.number);
    told.is_live = true;
    if (!is_same || told.stages != job.stages) {
      control::Flow& flow = *flows.add_flows();
      flow.set_id(job.number);
      flow.set_generation(job.generation);
      flow.set_name(job.name.data(), job.name.size());
      flow.set_weight(job.weight);
      flow.set_stages(job.stages);
    }
    if (is_same && told.totals == job.totals) {
      told.stages = job.stages;
      return;
    }
    if (!is_same) told.name = job.name;
    told.is_announced = true;
    told.generation = job.generation;
    told.stages = job.stages;
    told.totals = job.totals;
    control::FlowReport& each = *report.add_flows();
    each.set_flow(job.number);
    each.set_arrived_requests(job.totals.arrived.operations);
    each.set_arrived_bytes(job.totals.arrived.bytes);
    each.set_metadata_operations(job.totals.arrived.metadata_operations);
    each.set_done_cost(job.totals.done);
    each.set_limited_us(job.totals.limited.count());
  });
  for (std::uint32_t number = 0; number < told_.size(); ++number) {
    Told& told = told_[number];
    if (!told.is_announced || told.is_live) continue;
    end(number);
    told = {};
  }
}

}  // namespace vpfs::coordinator
