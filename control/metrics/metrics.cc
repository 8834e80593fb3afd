#include "control/metrics/metrics.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "control/metrics/families.h"
#include "control/metrics/shown.h"

namespace vpfs::control {
namespace {

constexpr double kMicroseconds = 1e6;  // in a second
constexpr std::string_view kPrefix = "vpfs_";
constexpr std::string_view kAllPrefix = "vpfs_all_";
constexpr std::string_view kPfs = "virtual_pfs";

// One series of each virtual PFS: a metric, or the part of it with this label.
template <typename Value>
struct Series {
  std::string_view name;
  std::string_view help;  // of the first series of a metric
  std::pair<std::string_view, std::string_view> label;
  Value (*value)(const VirtualPfs&);
  double per_unit = 1;
};

constexpr Series<std::uint64_t> kCounters[] = {
    {"vpfs_requests_total",
     "Requests that the data server answered.",
     {"operation", "read"},
     [](const VirtualPfs& pfs) { return pfs.read().requests(); }},
    {"vpfs_requests_total",
     "",
     {"operation", "write"},
     [](const VirtualPfs& pfs) { return pfs.write().requests(); }},
    {"vpfs_requests_total",
     "",
     {"operation", "metadata"},
     [](const VirtualPfs& pfs) { return pfs.metadata().requests(); }},
    {"vpfs_read_bytes_total",
     "Bytes that were read.",
     {},
     [](const VirtualPfs& pfs) { return pfs.read().bytes(); }},
    {"vpfs_write_bytes_total",
     "Bytes that were written.",
     {},
     [](const VirtualPfs& pfs) { return pfs.write().bytes(); }},
    {"vpfs_cost_bytes_total",
     "Cost of the requests that the data server answered, in bytes that count as much.",
     {},
     [](const VirtualPfs& pfs) { return pfs.cost_done(); }},
    {"vpfs_failed_requests_total",
     "Requests that the data server answered with an error.",
     {},
     [](const VirtualPfs& pfs) { return pfs.failed().requests(); }},
    {"vpfs_refused_requests_total",
     "Requests that were held up to their deadline, or beyond what their client may have held.",
     {},
     [](const VirtualPfs& pfs) { return pfs.refused().requests(); }},
    {"vpfs_passed_limit_requests_total",
     "Requests that passed a coordinator's limit, which would have held them for too long.",
     {},
     [](const VirtualPfs& pfs) { return pfs.passed_limit(); }},
    {"vpfs_held_seconds_total",
     "Time for which the next request was held, by what held it.",
     {"cause", "limit"},
     [](const VirtualPfs& pfs) { return pfs.held_limit_us(); },
     kMicroseconds},
    {"vpfs_held_seconds_total",
     "",
     {"cause", "share"},
     [](const VirtualPfs& pfs) { return pfs.held_share_us(); },
     kMicroseconds},
    {"vpfs_held_seconds_total",
     "",
     {"cause", "kept"},
     [](const VirtualPfs& pfs) { return pfs.held_kept_us(); },
     kMicroseconds},
    {"vpfs_held_seconds_total",
     "",
     {"cause", "depth"},
     [](const VirtualPfs& pfs) { return pfs.held_depth_us(); },
     kMicroseconds},
    {"vpfs_held_seconds_total",
     "",
     {"cause", "class"},
     [](const VirtualPfs& pfs) { return pfs.held_class_us(); },
     kMicroseconds},
    {"vpfs_held_seconds_total",
     "",
     {"cause", "client"},
     [](const VirtualPfs& pfs) { return pfs.held_client_us(); },
     kMicroseconds}};

// Those that mean something for a sum of virtual PFSes.
constexpr Series<std::uint64_t> kSums[] = {
    {"vpfs_queue_requests",
     "Requests that are held now.",
     {},
     [](const VirtualPfs& pfs) { return pfs.queued().requests(); }},
    {"vpfs_queue_bytes",
     "Bytes that the held requests ask for.",
     {},
     [](const VirtualPfs& pfs) { return pfs.queued().bytes(); }},
    {"vpfs_outstanding_requests",
     "Requests at the data server now.",
     {},
     [](const VirtualPfs& pfs) { return pfs.outstanding().requests(); }},
    {"vpfs_outstanding_bytes",
     "Bytes that the requests at the data server ask for.",
     {},
     [](const VirtualPfs& pfs) { return pfs.outstanding().bytes(); }}};

// A value that is not there has no series.
using Maybe = std::optional<std::uint64_t>;
Maybe unless_zero(std::uint64_t value) {
  return value == 0 ? std::nullopt : Maybe(value);
}

constexpr Series<Maybe> kGauges[] = {
    {"vpfs_weight",
     "Weight of the virtual PFS.",
     {},
     [](const VirtualPfs& pfs) { return Maybe(pfs.weight()); }},
    {"vpfs_nodes",
     "Nodes of the virtual PFS, where they are known.",
     {},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.nodes()); }},
    {"vpfs_keeps_no_queue",
     "1: the virtual PFS missed its share lately, since it keeps no queue.",
     {},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.keeps_no_queue() ? 1 : 0); }},
    {"vpfs_limit_bytes_per_second",
     "Most bytes per second, of the configuration or allocated by the coordinator.",
     {"source", "configured"},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.rate()); }},
    {"vpfs_limit_bytes_per_second",
     "",
     {"source", "allocated"},
     [](const VirtualPfs& pfs) {
       return pfs.has_allocated_rate() ? Maybe(pfs.allocated_rate()) : std::nullopt;
     }},
    {"vpfs_limit_operations_per_second",
     "Most requests per second, of the configuration or allocated by the coordinator.",
     {"source", "configured"},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.operations()); }},
    {"vpfs_limit_operations_per_second",
     "",
     {"source", "allocated"},
     [](const VirtualPfs& pfs) {
       return pfs.has_allocated_operations() ? Maybe(pfs.allocated_operations()) : std::nullopt;
     }},
    {"vpfs_limit_metadata_operations_per_second",
     "Most metadata operations per second, allocated by the coordinator.",
     {"source", "allocated"},
     [](const VirtualPfs& pfs) {
       return pfs.has_allocated_metadata_operations() ? Maybe(pfs.allocated_metadata_operations())
                                                      : std::nullopt;
     }},
    {"vpfs_minimum_bytes_per_second",
     "Bytes per second up to which the virtual PFS is served first.",
     {},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.min()); }},
    {"vpfs_target_latency_seconds",
     "Longest time to an answer that the virtual PFS asks for.",
     {},
     [](const VirtualPfs& pfs) { return unless_zero(pfs.latency_us()); },
     kMicroseconds},
    {"vpfs_wait_seconds",
     "Time from arrival to dispatch since the start: median, 99th percentile and longest.",
     {"statistic", "p50"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.held().p50_us()); },
     kMicroseconds},
    {"vpfs_wait_seconds",
     "",
     {"statistic", "p99"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.held().p99_us()); },
     kMicroseconds},
    {"vpfs_wait_seconds",
     "",
     {"statistic", "max"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.held().max_us()); },
     kMicroseconds},
    {"vpfs_service_seconds",
     "Time at the data server since the start: median, 99th percentile and longest.",
     {"statistic", "p50"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.service().p50_us()); },
     kMicroseconds},
    {"vpfs_service_seconds",
     "",
     {"statistic", "p99"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.service().p99_us()); },
     kMicroseconds},
    {"vpfs_service_seconds",
     "",
     {"statistic", "max"},
     [](const VirtualPfs& pfs) { return Maybe(pfs.service().max_us()); },
     kMicroseconds},
    {"vpfs_oldest_wait_seconds",
     "For how long the oldest held request has waited.",
     {},
     [](const VirtualPfs& pfs) {
       return pfs.has_wait() ? Maybe(pfs.wait().since_us()) : std::nullopt;
     },
     kMicroseconds}};

Labels labels_of(const VirtualPfs& pfs, const auto& series) {
  Labels labels = {{kPfs, pfs.name()}};
  if (!series.label.first.empty()) labels.push_back(series.label);
  return labels;
}

void add_counters(Families& to, const Shown& shown) {
  for (const auto& series : kCounters) {
    if (!series.help.empty()) to.counter(series.name, series.help);
    for (const VirtualPfs& each : shown.each) {
      to.count(labels_of(each, series), series.value(each), series.per_unit);
    }
  }
}

void add_totals(Families& to, const VirtualPfs& all) {
  for (const auto& series : kCounters) {
    if (!series.help.empty()) {
      const std::string name = std::string(kAllPrefix).append(series.name.substr(kPrefix.size()));
      to.counter(name,
                 std::string(series.help) + " Sum over all virtual PFSes, including retired ones.");
    }
    const Labels labels = series.label.first.empty() ? Labels() : Labels{series.label};
    to.count(labels, series.value(all), series.per_unit);
  }
}

void add_gauges(Families& to, const Shown& shown) {
  for (const auto& series : kSums) {
    to.gauge(series.name, series.help);
    for (const VirtualPfs& each : shown.each) {
      to.set(labels_of(each, series), static_cast<double>(series.value(each)));
    }
    if (shown.others_count > 0) {
      to.set({{kPfs, kOthers}}, static_cast<double>(series.value(shown.others)));
    }
  }
  for (const auto& series : kGauges) {
    if (!series.help.empty()) to.gauge(series.name, series.help);
    for (const VirtualPfs& each : shown.each) {
      const Maybe value = series.value(each);
      if (value) to.set(labels_of(each, series), static_cast<double>(*value) / series.per_unit);
    }
  }
}

void add_descriptions(Families& to, const Shown& shown) {
  to.gauge("vpfs_virtual_pfs_info", "What a virtual PFS is; always 1.");
  for (const VirtualPfs& each : shown.each) {
    to.set({{kPfs, each.name()},
            {"template", each.template_()},
            {"rule", each.rule()},
            {"class", each.class_()},
            {"jobid", each.jobid()}},
           1);
  }
  to.gauge("vpfs_wait_reason", "Why the oldest held request waits; always 1.");
  for (const VirtualPfs& each : shown.each) {
    if (each.has_wait()) to.set({{kPfs, each.name()}, {"reason", each.wait().reason()}}, 1);
  }
  to.summary("vpfs_request_duration_seconds", "Time from arrival to the answer.");
  for (const VirtualPfs& each : shown.each) {
    for (const auto& [operation, durations] :
         {std::pair("read", &each.read_usecs()), std::pair("write", &each.write_usecs())}) {
      to.observe({{kPfs, each.name()}, {"operation", operation}}, durations->samples(),
                 static_cast<double>(durations->sum()) / kMicroseconds);
    }
  }
}

void add_rules(Families& to, std::span<const RuleState> rules) {
  to.gauge("vpfs_rule_info", "What a rule is; always 1.");
  for (const RuleState& each : rules) {
    to.set({{"rule", each.name()},
            {"origin", each.origin()},
            {"mode", each.shadow() ? "shadow" : "enforce"},
            {kPfs, each.virtual_pfs()},
            {"class", each.class_()}},
           1);
  }
  to.gauge("vpfs_rule_in_force", "0: the rule has a problem, or a rule before it takes all.");
  for (const RuleState& each : rules) {
    to.set({{"rule", each.name()}}, each.problem().empty() && each.hidden_by().empty() ? 1 : 0);
  }
  const auto count = [&](std::string_view name, std::string_view help, double per_unit,
                         std::uint64_t (*value)(const RuleState&), bool only_shadow) {
    to.counter(name, help);
    for (const RuleState& each : rules) {
      if (each.shadow() || !only_shadow) to.count({{"rule", each.name()}}, value(each), per_unit);
    }
  };
  count(
      "vpfs_rule_hits_total", "Requests that the rule has matched.", 1,
      [](const RuleState& rule) { return rule.hits(); }, false);
  count(
      "vpfs_rule_virtual_pfs_total", "Virtual PFSes that the rule has made.", 1,
      [](const RuleState& rule) { return rule.virtual_pfs_made(); }, false);
  count(
      "vpfs_shadow_requests_total", "Requests that a shadow rule would have held.", 1,
      [](const RuleState& rule) { return rule.would_hold().requests(); }, true);
  count(
      "vpfs_shadow_bytes_total", "Bytes of the requests that a shadow rule would have held.", 1,
      [](const RuleState& rule) { return rule.would_hold().bytes(); }, true);
  count(
      "vpfs_shadow_held_seconds_total", "Time for which a shadow rule would have held something.",
      kMicroseconds, [](const RuleState& rule) { return rule.would_hold().seconds_us(); }, true);
}

void add_stage(Families& to, const StatsReply& stats, const Shown& shown,
               const MetricsOptions& options) {
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    to.gauge(name, help);
    to.set({}, static_cast<double>(value));
  };
  to.gauge("vpfs_build_info", "The program, its version and its policy; always 1.");
  to.set({{"version", options.version}, {"policy", stats.policy()}}, 1);
  to.gauge("vpfs_stage_info", "The stage by its name, and its data server; always 1.");
  to.set({{"stage", stats.name()}, {"upstream", stats.upstream()}}, 1);
  gauge("vpfs_start_time_seconds", "When the stage started, since 1970.", stats.started_at());
  gauge("vpfs_connections", "Clients that are connected.", stats.connections());
  gauge("vpfs_bypass", "1: everything is forwarded at once, and no rule counts.", stats.bypass());
  gauge("vpfs_draining", "1: the stage is about to end.", stats.draining());
  gauge("vpfs_allocated", "1: limits of a coordinator are in force.", stats.allocated());
  gauge("vpfs_coordinator_term", "Term of the coordinator's last cycle.", stats.term());
  if (stats.has_coordinator()) {
    gauge("vpfs_coordinator_connected", "1: connected to the configured coordinator.",
          stats.coordinator().connected());
    to.counter("vpfs_coordinator_dials_total", "Attempts to connect to the coordinator.");
    to.count({}, stats.coordinator().dials());
    to.gauge("vpfs_coordinator_dialled",
             "1: the address of the coordinator that is connected, or was dialled last.");
    for (const std::string& address : stats.coordinator().addresses()) {
      to.set({{"address", address}}, address == stats.coordinator().address() ? 1 : 0);
    }
  }
  gauge("vpfs_depth_requests", "Most requests at the data server at once.", stats.depth_requests());
  if (stats.depth_bytes() != 0 && stats.depth_bytes() != UINT64_MAX) {
    gauge("vpfs_depth_bytes", "Largest cost at the data server at once.", stats.depth_bytes());
  }
  gauge("vpfs_all_queue_requests", "Requests that are held now, of all virtual PFSes.",
        stats.queued());
  gauge("vpfs_all_outstanding_requests", "Requests at the data server now, of all virtual PFSes.",
        stats.outstanding());
  to.gauge("vpfs_virtual_pfs", "Virtual PFSes, with series of their own or in (others).");
  to.set({{"shown", "yes"}}, static_cast<double>(shown.each.size()));
  to.set({{"shown", "no"}}, static_cast<double>(shown.others_count));
  if (stats.certificate_ends_at() != 0) {
    gauge("vpfs_certificate_end_timestamp_seconds",
          "When the certificate of its ports ends, in seconds since 1970.",
          stats.certificate_ends_at());
  }
  gauge("vpfs_jobs_with_io", "Jobs that did I/O in the last minute, as their requests show.",
        stats.jobs_with_io());
  gauge("vpfs_registered_jobs_with_io", "Those of them that are registered.",
        stats.registered_jobs_with_io());
  to.counter("vpfs_virtual_pfs_retired_total", "Virtual PFSes that are gone.");
  to.count({}, stats.virtual_pfs_retired());
  to.counter("vpfs_lag_faults_total",
             "Seconds in which a virtual PFS was further from its share than promised.");
  to.count({}, stats.lag_faults());
}

}  // namespace

std::string metrics_text(const StatsReply& stats, const MetricsOptions& options) {
  const Shown shown = choose_shown(stats, options.most_virtual_pfs);
  Families families;
  add_stage(families, stats, shown, options);
  add_totals(families, shown.all);
  add_counters(families, shown);
  add_gauges(families, shown);
  add_descriptions(families, shown);
  add_rules(families, choose_rules(stats, options.most_rules));
  return families.text();
}

}  // namespace vpfs::control
