#include "control/admin/flow_reports.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"

namespace vpfs::control {
namespace {

// How many names are copied per lock.
constexpr std::size_t kNames = 64;

void fill(FlowReport& report, std::uint32_t flow, const stage::CounterRow& row, Duration limited) {
  const stage::Counters& counters = row.counters;
  const stage::Amount arrived = counters.arrived.all();
  const stage::Amount sent = counters.sent.all();
  const stage::Amount done = counters.done.all();
  report.set_flow(flow);
  report.set_arrived_requests(arrived.requests);
  report.set_arrived_bytes(arrived.bytes);
  report.set_sent_requests(sent.requests);
  report.set_sent_bytes(sent.bytes);
  report.set_sent_cost(counters.cost_sent);
  report.set_done_requests(done.requests);
  report.set_done_bytes(done.bytes);
  report.set_done_cost(counters.cost_done);
  report.set_queued_requests(counters.queued.requests);
  report.set_queued_bytes(counters.queued.bytes);
  report.set_limited_us(microseconds_of(limited));
  report.set_metadata_operations(counters.arrived.of(IoKind::metadata).requests);
  report.set_present_us(microseconds_of(row.share.present));
  report.set_crowded_us(microseconds_of(row.share.in_flight));
  report.set_without_queue_us(microseconds_of(row.share.without_queue));
}

// What is told of a virtual PFS, copied under the lock.
struct Named {
  stage::VirtualPfsId id;
  std::shared_ptr<const stage::VirtualPfsInfo> info;
  std::string jobid;
};

}  // namespace

std::optional<stage::VirtualPfsId> FlowReports::find(std::uint32_t flow) const {
  if (flow >= told_.size() || !told_[flow].announced) return std::nullopt;
  return stage::VirtualPfsId{.app = AppId{flow}, .generation = told_[flow].generation};
}

void FlowReports::add(StageGate& gate, TimePoint now, Flows& flows, Report& report) {
  gate.copy_counters(now, rows_);
  if (told_.size() < rows_.size()) told_.resize(rows_.size());
  new_.clear();
  for (std::uint32_t flow = 0; flow < rows_.size(); ++flow) {
    const stage::CounterRow& row = rows_[flow];
    Told& told = told_[flow];
    const bool is_known = told.announced && told.generation == row.id.generation;
    if (told.announced && (!row.is_there || !is_known)) {
      FlowReport& ended = *report.add_flows();
      ended.set_flow(flow);
      ended.set_ended(true);
      told = {};
    }
    if (!row.is_there) continue;
    const stage::Counters& counters = row.counters;
    const bool was_held = told.limited.advance(counters.held.limit, row.is_capped);
    const Told seen = {.announced = true,
                       .generation = row.id.generation,
                       .arrived = counters.arrived.all().requests,
                       .sent = counters.sent.all().requests,
                       .done = counters.done.all().requests,
                       .queued = counters.queued.requests,
                       .limited = told.limited,
                       .present = row.share.present,
                       .weights = row.weights};
    if (!told.announced || seen.weights != told.weights) {
      new_.push_back(row.id);
    } else if (seen.arrived == told.arrived && seen.sent == told.sent && seen.done == told.done &&
               seen.queued == told.queued && !was_held && seen.present == told.present) {
      continue;
    }
    told = seen;
    fill(*report.add_flows(), flow, row, told.limited.total());
  }
  if (!new_.empty()) announce(gate, now, flows);
}

void FlowReports::announce(StageGate& gate, TimePoint now, Flows& flows) {
  for (std::size_t first = 0; first < new_.size(); first += kNames) {
    std::vector<Named> named;
    const auto part = std::span(new_).subspan(first, std::min(kNames, new_.size() - first));
    named.reserve(part.size());
    gate.inspect(now, [&](stage::Stage& from, TimePoint) {
      const stage::VirtualPfsTable& table = from.virtual_pfs();
      for (const stage::VirtualPfsId id : part) {
        if (!table.is_there(id)) continue;
        named.push_back(
            {.id = id, .info = table[id.app].info, .jobid = std::string(table.jobid(id.app))});
      }
    });
    for (const Named& each : named) {
      const Share share = each.info->share();
      Flow& flow = *flows.add_flows();
      flow.set_id(std::to_underlying(each.id.app));
      flow.set_generation(each.id.generation);
      flow.set_name(each.info->name);
      flow.set_jobid(each.jobid);
      flow.set_nodes(static_cast<std::uint32_t>(share.own_value("nodes").value_or(0)));
      flow.set_weight(share.weight);
      if (each.info->job_uid) flow.set_uid(*each.info->job_uid);
      const std::string& declared = each.info->declared->name;
      if (declared != each.info->name) flow.set_template_(declared);
    }
  }
}

}  // namespace vpfs::control
