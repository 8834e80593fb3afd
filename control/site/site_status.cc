#include "control/site/site_status.h"

#include <chrono>
#include <cstdint>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/version.h"
#include "control/admin/rule_states.h"

namespace vpfs::coordinator {
namespace {

using allocation::Amounts;
using nlohmann::ordered_json;

ordered_json describe(const Amounts& amounts) {
  ordered_json row;
  row["bytes"] = amounts.bytes;
  row["operations"] = amounts.operations;
  row["metadata_operations"] = amounts.metadata_operations;
  return row;
}

ordered_json describe(const RecentCycles::Summary& cycles, const Config& config) {
  ordered_json row;
  row["done"] = cycles.cycles;
  row["late_answers"] = cycles.late;
  row["kind"] = config.cycle == CycleKind::four ? "four" : "fused";
  row["period_us"] = microseconds_of(config.period);
  row["deadline_us"] = microseconds_of(config.deadline);
  row["lease_us"] = microseconds_of(config.lease);
  row["p50_us"] = microseconds_of(cycles.p50);
  row["p99_us"] = microseconds_of(cycles.p99);
  row["max_us"] = microseconds_of(cycles.max);
  return row;
}

ordered_json describe(const StageLinks::Counters& links) {
  ordered_json row;
  row["accepted"] = links.accepted;
  row["refused"] = links.refused;
  row["sent_bytes"] = links.sent_bytes;
  row["received_bytes"] = links.received_bytes;
  return row;
}

ordered_json describe(const ParentLink::Status& parent) {
  ordered_json row;
  row["address"] = parent.address;
  row["addresses"] = parent.addresses;
  row["connected"] = parent.is_connected;
  row["leads"] = parent.is_led;
  row["problem"] = parent.problem;
  row["term"] = parent.term;
  row["sequence"] = parent.sequence;
  return row;
}

ordered_json describe(const SiteNumbers::Stage& from) {
  ordered_json row;
  row["name"] = from.name;
  row["address"] = from.address;
  row["program"] = from.program;
  row["connected"] = from.connected;
  row["late"] = from.late;
  row["silent"] = from.silent;
  row["was_dialled"] = from.was_dialled;
  row["aggregator"] = from.is_aggregator;
  row["late_cycles"] = from.late_cycles;
  row["lies"] = from.lies;
  row["refused_answers"] = from.refused_answers;
  row["not_applied"] = from.not_applied;
  row["problem"] = from.problem;
  row["jobs"] = from.jobs;
  row["caps"] = describe(from.caps);
  ordered_json rules;
  rules["state"] = from.connected ? from.rules : "not connected";
  rules["problem"] = from.rules_problem;
  rules["warnings"] = from.rules_warnings;
  row["rules"] = std::move(rules);
  return row;
}

ordered_json describe(const SiteNumbers::Job::Total& from) {
  ordered_json row;
  row["cost"] = from.cost;
  row["entitled"] = from.entitled;
  row["reached"] = from.is_reached;
  if (from.is_reached) return row;
  row["why"] = from.why;
  row["would_help"] = from.remedy;
  row["at"] = from.stages;
  return row;
}

ordered_json describe(const SiteNumbers::Job& from) {
  ordered_json row;
  row["name"] = from.name;
  row["weight"] = from.weight;
  row["most"] = describe(from.most);
  row["stages"] = from.stages;
  row["granted"] = describe(from.granted);
  row["arrived"] = describe(from.arrived);
  row["cost_done"] = from.done;
  if (from.total) row["total"] = describe(*from.total);
  return row;
}

template <typename Rows>
ordered_json all_of(const Rows& rows) {
  ordered_json all = ordered_json::array();
  for (const auto& each : rows) all.push_back(describe(each));
  return all;
}

}  // namespace

std::string status_json(const SiteNumbers& numbers, const Config& config,
                        const control::LiveState& live) {
  const stage::BookState& book = live.book().state();
  ordered_json status;
  status["pid"] = ::getpid();
  status["name"] = numbers.name;
  status["program"] = "vpfs-coordinator " + std::string(version());
  status["started_at"] = numbers.started.time_since_epoch().count();
  status["policy"] = numbers.policy;
  status["policy_problem"] = numbers.policy_problem;
  status["term"] = numbers.term;
  status["sequence"] = numbers.sequence;
  status["capacity"] = describe(numbers.capacity);
  status["in_force"] = describe(numbers.in_force);
  status["cycles"] = describe(numbers.cycles, config);
  ordered_json rules;
  rules["version"] = book.version;
  rules["live"] = live.composed().config.rules.size();
  rules["not_in_force"] = live.composed().suspended.size();
  rules["jobs"] = live.composed().config.jobs.size();
  rules["confirm_by_at"] = book.pending ? book.pending->deadline.time_since_epoch().count() : 0;
  status["rules"] = std::move(rules);
  status["store"] = {{"problem", numbers.store_problem}};
  if (numbers.certificate_end) {
    status["certificate_ends_at"] = seconds_since_epoch(*numbers.certificate_end);
  }
  status["connections"] = describe(numbers.links);
  if (numbers.parent) status["parent"] = describe(*numbers.parent);
  status["stages"] = all_of(numbers.stages);
  status["jobs"] = all_of(numbers.jobs);
  return json_text(status, 2) + "\n";
}

control::StatsReply stats_of(const SiteNumbers& numbers, const control::LiveState& live,
                             bool rules) {
  control::StatsReply reply;
  reply.set_name(numbers.name);
  reply.set_policy(numbers.policy);
  reply.set_term(numbers.term);
  reply.set_sequence(numbers.sequence);
  reply.set_connections(numbers.connected());
  reply.set_started_at(numbers.started.time_since_epoch().count());
  for (const SiteNumbers::Job& job : numbers.jobs) {
    control::VirtualPfs& to = *reply.add_virtual_pfs();
    to.set_name(job.name);
    to.set_weight(job.weight);
    to.set_rate(job.most.bytes);
    to.set_operations(job.most.operations);
    if (job.granted.bytes > 0) to.set_allocated_rate(job.granted.bytes);
    if (job.granted.operations > 0) to.set_allocated_operations(job.granted.operations);
    if (job.granted.metadata_operations > 0) {
      to.set_allocated_metadata_operations(job.granted.metadata_operations);
    }
    to.set_cost_done(job.done);
  }
  if (rules) control::add_rules(*reply.mutable_rules(), live, {});
  return reply;
}

}  // namespace vpfs::coordinator
