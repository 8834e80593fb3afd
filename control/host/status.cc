#include "control/host/status.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/device.h"
#include "base/json_text.h"
#include "control/admin/jobs_with_io.h"

namespace vpfs::control {

using nlohmann::ordered_json;

namespace {

// Assigning fields one by one is fast: an initializer list copies each of them twice.
ordered_json describe(const StageSnapshot::Latencies& latencies) {
  ordered_json row;
  row["p50"] = microseconds_of(latencies.p50);
  row["p99"] = microseconds_of(latencies.p99);
  row["max"] = microseconds_of(latencies.max);
  return row;
}

// The parts of the share that are set.
void add_share(ordered_json& row, const Share& share) {
  row["weight"] = share.weight;
  if (share.rate.count > 0) {
    row["rate"] = share.rate.count;
    row["burst"] = share.burst.count;
  }
  if (share.operations > 0) row["operations"] = share.operations;
  if (share.min.count > 0) row["min"] = share.min.count;
  if (share.latency > Duration::zero()) row["latency_us"] = microseconds_of(share.latency);
  if (share.finish_bytes.count > 0) row["finish_bytes"] = share.finish_bytes.count;
  for (const Share::Own& own : share.own) row[std::string(own.word)] = own.value;
}

// What a policy says.
void add_fields(ordered_json& row, const StatusFields& fields) {
  for (const StatusField& field : fields) {
    const auto add = [&](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Duration>) {
        row[std::string(field.name) + "_us"] = microseconds_of(value);
      } else {
        row[std::string(field.name)] = value;
      }
    };
    std::visit(add, field.value);
  }
}

// The kind of a lane's IoDescription::device.
const char* device_kind(std::uint32_t device) {
  return device < kMirrorGroup ? "target" : "mirror_group";
}
std::uint32_t device_number(std::uint32_t device) {
  return device % kMirrorGroup;
}

ordered_json held_us(const stage::Counters& counters) {
  const HoldTimes& held = counters.held;
  ordered_json row;
  row["limit"] = microseconds_of(held.limit);
  row["share"] = microseconds_of(held.share);
  row["kept"] = microseconds_of(held.kept_slot);
  row["depth"] = microseconds_of(held.depth);
  row["class"] = microseconds_of(held.traffic_class);
  row["client"] = microseconds_of(counters.slow_client);
  return row;
}

// Only policies with weights have it.
void add_verdict(ordered_json& row, const stage::ShareWatch::Verdict& share) {
  if (share.present == Duration::zero()) return;
  if (share.keeps_no_queue) row["keeps_no_queue"] = true;
  ordered_json times;
  times["present"] = microseconds_of(share.present);
  times["crowded"] = microseconds_of(share.in_flight);
  times["without_queue"] = microseconds_of(share.without_queue);
  row["in_flight_us"] = std::move(times);
}

void add_counters(ordered_json& row, const stage::Counters& counters) {
  const stage::Amount done = counters.done.all();
  row["done_requests"] = done.requests;
  row["done_bytes"] = done.bytes;
  row["failed_requests"] = counters.failed.all().requests;
  row["refused_requests"] = counters.refused.all().requests;
  row["excess_requests"] = counters.excess;
  row["given_up_requests"] = counters.given_up;
  row["cost_sent"] = counters.cost_sent;
  row["cost_done"] = counters.cost_done;
  row["held_us"] = held_us(counters);
}

void add_unscheduled(ordered_json& row, const stage::Amount& unscheduled) {
  if (unscheduled.requests == 0) return;
  row["unscheduled_requests"] = unscheduled.requests;
  row["unscheduled_bytes"] = unscheduled.bytes;
}

ordered_json describe(const TrafficClasses& classes, const StageSnapshot::Row& from,
                      bool one_lane) {
  ordered_json row;
  row["name"] = from.info->name;
  if (from.info->removed) row["removed"] = true;
  if (from.rule != nullptr) row["rule"] = *from.rule;
  if (!from.jobid.empty()) row["jobid"] = from.jobid;
  if (classes.mode != TrafficClasses::Mode::none && from.traffic_class < classes.classes.size()) {
    row["class"] = classes.classes[from.traffic_class].name;
  }
  add_share(row, from.info->share());
  if (one_lane) add_fields(row, from.report);
  if (from.allocated.bytes) row["allocated_rate"] = from.allocated.bytes->count;
  if (from.allocated.operations) row["allocated_operations"] = *from.allocated.operations;
  if (from.allocated.metadata_operations) {
    row["allocated_metadata_operations"] = *from.allocated.metadata_operations;
  }
  if (from.info->refused_promise) row["refused_promise"] = *from.info->refused_promise;
  const stage::Counters& counters = from.counters;
  row["queued_requests"] = counters.queued.requests;
  row["queued_bytes"] = counters.queued.bytes;
  row["outstanding_requests"] = counters.outstanding.requests;
  row["outstanding_bytes"] = counters.outstanding.bytes;
  add_counters(row, counters);
  add_verdict(row, from.share);
  add_unscheduled(row, from.unscheduled);
  row["wait_us"] = describe(from.held);
  row["server_us"] = describe(from.service);
  if (!from.wait) return row;
  if (from.wait->since) row["oldest_waits_us"] = microseconds_of(*from.wait->since);
  row["oldest_waits_for"] = from.wait->text();
  if (from.wait->target) {
    row[std::string("oldest_waits_for_") + device_kind(*from.wait->target)] =
        device_number(*from.wait->target);
  }
  if (from.wait->may_go_in) row["oldest_may_go_in_us"] = microseconds_of(*from.wait->may_go_in);
  return row;
}

// The sums of retired virtual PFSes.
ordered_json describe(const StageSnapshot::Retired& retired) {
  ordered_json row = {{"virtual_pfs", retired.count}};
  add_counters(row, retired.counters);
  add_unscheduled(row, retired.unscheduled);
  row["wait_us"] = describe(retired.held);
  row["server_us"] = describe(retired.service);
  return row;
}

ordered_json describe(const SchedulerSettings& settings, const StageSnapshot::Lane& lane) {
  ordered_json row = {{"requests", lane.depth.requests}, {"cost", nullptr}};
  if (lane.depth.cost != UINT64_MAX) row["cost"] = lane.depth.cost;
  if (settings.auto_depth) row["auto"] = true;
  ordered_json all = {{"depth", row}};
  add_fields(all, lane.server);
  return all;
}

// The state of each target's scheduler.
ordered_json describe(const SchedulerSettings& settings,
                      const std::vector<StageSnapshot::Lane>& lanes) {
  ordered_json rows = ordered_json::array();
  for (const StageSnapshot::Lane& lane : lanes) {
    if (!lane.target) continue;  // no request has named a target yet
    ordered_json row = {{device_kind(*lane.target), device_number(*lane.target)}};
    row.update(describe(settings, lane));
    row["queued"] = lane.queued;
    row["outstanding"] = lane.outstanding;
    ordered_json reports = ordered_json::array();
    for (const StageSnapshot::LaneFlow& flow : lane.flows) {
      ordered_json report = {{"name", flow.info->name}, {"queued_requests", flow.queued}};
      add_fields(report, flow.report);
      reports.push_back(std::move(report));
    }
    row["virtual_pfs"] = std::move(reports);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string time_text(WallTime at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", at);
}

// The coordinator that the program connects to.
ordered_json describe(const DialledCoordinator& coordinator) {
  ordered_json row = {{"address", coordinator.address},
                      {"addresses", coordinator.addresses},
                      {"connected", coordinator.connected}};
  if (!coordinator.name.empty()) row["name"] = coordinator.name;
  row["since"] = time_text(coordinator.since);
  row["dials"] = coordinator.dials;
  if (coordinator.problem.empty()) return row;
  row["problem"] = coordinator.problem;
  row["problem_at"] = time_text(coordinator.problem_at);
  return row;
}

// What coordinators sent, once one did.
ordered_json describe(const StageSnapshot::Coordinator& coordinator) {
  ordered_json row;
  row["term"] = coordinator.epoch->term;
  row["sequence"] = coordinator.epoch->sequence;
  if (coordinator.lease_left) row["lease_us_left"] = microseconds_of(*coordinator.lease_left);
  row["cycles_applied"] = coordinator.counts.applied;
  row["cycles_outdated"] = coordinator.counts.outdated;
  row["cycles_unsupported"] = coordinator.counts.unsupported;
  row["allocations_unknown"] = coordinator.counts.unknown;
  row["leases_ended"] = coordinator.counts.lease_ends;
  return row;
}

// The client nodes whose applications share a few connections.
ordered_json describe(const std::vector<StageSnapshot::Client>& clients) {
  ordered_json rows = ordered_json::array();
  for (const StageSnapshot::Client& client : clients) {
    ordered_json row = {{"client", client.name}, {"connections", client.connections}};
    if (client.allowance) row["max_held"] = *client.allowance;
    row["excess_requests"] = client.refused;
    rows.push_back(std::move(row));
  }
  return rows;
}

// What a shadow rule's limits would have held.
ordered_json describe(const stage::ShadowLimits::Report& report) {
  ordered_json row;
  row["requests"] = report.would_hold.requests;
  row["bytes"] = report.would_hold.bytes;
  row["us"] = microseconds_of(report.held);
  row["unmeasured_requests"] = report.unmeasured.requests;
  return row;
}

ordered_json describe(const StageSnapshot::Rule& from) {
  ordered_json row;
  row["name"] = *from.name;
  row["hits"] = from.hits;
  row["virtual_pfs_made"] = from.made;
  if (from.idle) row["idle_us"] = microseconds_of(*from.idle);
  if (from.would_hold) row["would_hold"] = describe(*from.would_hold);
  return row;
}

// In the order of the configuration, "default" at the end.
ordered_json describe(const std::vector<stage::RuleConfig>& rules,
                      const std::vector<StageSnapshot::Rule>& counted) {
  std::map<std::string_view, const StageSnapshot::Rule*> by_name;
  for (const StageSnapshot::Rule& each : counted) by_name.emplace(*each.name, &each);
  ordered_json rows = ordered_json::array();
  for (const stage::RuleConfig& rule : rules) {
    const auto found = by_name.find(rule.name);
    if (found == by_name.end()) continue;
    ordered_json row = describe(*found->second);
    row["virtual_pfs"] = rule.virtual_pfs;
    if (rule.exempt) row["exempt"] = true;
    rows.push_back(std::move(row));
  }
  rows.push_back(describe(counted.front()));
  return rows;
}

}  // namespace

void add_reloads(ordered_json& status, const Reloads& reloads) {
  status["reloads"] = {{"tried", reloads.tried}, {"failed", reloads.failed}};
  if (!reloads.last_error.empty()) status["reloads"]["last_error"] = reloads.last_error;
}

void add_stage(ordered_json& status, const stage::Config& config, const StageSnapshot& snapshot) {
  status.update(describe(config.scheduler, snapshot.lanes.front()));
  std::size_t queued = 0;
  std::size_t outstanding = snapshot.unscheduled;
  for (const StageSnapshot::Lane& lane : snapshot.lanes) {
    queued += lane.queued;
    outstanding += lane.outstanding;
  }
  status["queued"] = queued;
  status["outstanding"] = outstanding;
  ordered_json rows = ordered_json::array();
  for (const StageSnapshot::Row& row : snapshot.rows) {
    rows.push_back(describe(config.scheduler.classes, row, snapshot.lanes.size() == 1));
  }
  if (snapshot.retired.count > 0) rows.front()["retired"] = describe(snapshot.retired);
  status["virtual_pfs"] = std::move(rows);
  const JobsWithIo jobs = jobs_with_io(snapshot, config);
  status["jobs_with_io"] = {{"all", jobs.all}, {"registered", jobs.registered}};
  status["rules"] = describe(config.rules, snapshot.rules);
  if (config.scheduler_per_target) status["targets"] = describe(config.scheduler, snapshot.lanes);
  if (!snapshot.clients.empty()) status["clients"] = describe(snapshot.clients);
  status["virtual_pfs_refused"] = snapshot.virtual_pfs_refused;
}

void add_coordinator(ordered_json& status, const HostStatus& host) {
  if (host.coordinator) status["coordinator"] = describe(*host.coordinator);
  const StageSnapshot::Coordinator& sent = host.snapshot.coordinator;
  if (sent.epoch) status["coordinator"].update(describe(sent));
  if (host.certificate_end) {
    status["certificate_ends_at"] = seconds_since_epoch(*host.certificate_end);
  }
}

std::string to_text(const ordered_json& status) {
  return json_text(status, 2) + "\n";
}

}  // namespace vpfs::control
