#include "proxy/status.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "net/endpoint.h"

namespace vpfs::proxy {
namespace {

using nlohmann::ordered_json;

std::int64_t microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

ordered_json latencies(const LatencyHistogram& histogram) {
  const auto quantile = [&](double q) { return microseconds(histogram.quantile(q)); };
  return {{"p50", quantile(0.50)}, {"p99", quantile(0.99)}, {"max", microseconds(histogram.max())}};
}

// What the share entitles to, as far as it says something.
void add_share(ordered_json& row, const Share& share) {
  row["weight"] = share.weight;
  if (share.rate.count > 0) {
    row["rate"] = share.rate.count;
    row["burst"] = share.burst.count;
  }
  if (share.operations > 0) row["operations"] = share.operations;
  if (share.min.count > 0) row["min"] = share.min.count;
  if (share.latency > Duration::zero()) row["latency_us"] = microseconds(share.latency);
  if (share.finish_bytes.count > 0) row["finish_bytes"] = share.finish_bytes.count;
  if (share.nodes > 0) row["nodes"] = share.nodes;
}

void add_report(ordered_json& row, const FlowReport& report) {
  if (report.tokens) row["tokens"] = *report.tokens;
  if (report.operation_tokens) row["operation_tokens"] = *report.operation_tokens;
  if (report.rate) row["rate_now"] = *report.rate;
  if (report.promised) row["promised"] = *report.promised;
  if (report.deadline_misses) {
    row["deadline_misses"] = *report.deadline_misses;
    row["worst_tardiness_us"] = microseconds(report.worst_tardiness);
  }
  if (report.record) row["record"] = *report.record;
  if (report.lent) row["lent"] = *report.lent;
  if (report.borrowed) row["borrowed"] = *report.borrowed;
}

// What a lane is for, by IoDescription::device.
const char* device_kind(std::uint32_t device) {
  return device < kMirrorGroup ? "target" : "mirror_group";
}
std::uint32_t device_number(std::uint32_t device) {
  return device % kMirrorGroup;
}

using Lanes = std::vector<Dispatcher::Lane>;

// The lane where a flow's oldest request waits, if it has any.
const Dispatcher::Lane* lane_of_oldest(const Lanes& lanes, AppId app) {
  const Dispatcher::Lane* found = nullptr;
  TimePoint arrival = TimePoint::max();
  for (const Dispatcher::Lane& lane : lanes) {
    const IoRequest* const oldest = lane.scheduler->flow(app).oldest;
    if (oldest == nullptr || oldest->arrival >= arrival) continue;
    arrival = oldest->arrival;
    found = &lane;
  }
  return found;
}

ordered_json describe(const stage::VirtualPfs& pfs, const Lanes& lanes, AppId app, TimePoint now) {
  std::size_t queued = 0;
  for (const Dispatcher::Lane& lane : lanes) queued += lane.scheduler->flow(app).queued;
  ordered_json row = {{"name", pfs.name}};
  if (pfs.removed) row["removed"] = true;
  add_share(row, pfs.share);
  if (lanes.size() == 1) add_report(row, lanes.front().scheduler->report(app, now));
  if (!pfs.refused_promise.empty()) row["refused_promise"] = pfs.refused_promise;
  row.update({{"queued_requests", queued},
              {"queued_bytes", pfs.queued_bytes.count},
              {"outstanding_requests", pfs.outstanding_requests},
              {"outstanding_bytes", pfs.outstanding_bytes.count},
              {"done_requests", pfs.done_requests},
              {"done_bytes", pfs.done_bytes.count},
              {"failed_requests", pfs.failed_requests},
              {"refused_requests", pfs.refused_requests},
              {"excess_requests", pfs.excess_requests},
              {"given_up_requests", pfs.given_up_requests},
              {"wait_us", latencies(pfs.wait)},
              {"server_us", latencies(pfs.service)}});
  if (const Dispatcher::Lane* const lane = lane_of_oldest(lanes, app)) {
    const WaitReason why = lane->scheduler->why_waiting(app, now);
    row["oldest_waits_us"] = microseconds(now - lane->scheduler->flow(app).oldest->arrival);
    row["oldest_waits_for"] = why.reason;
    if (lane->target) {
      row[std::string("oldest_waits_for_") + device_kind(*lane->target)] =
          device_number(*lane->target);
    }
    if (why.eligible) row["oldest_may_go_in_us"] = microseconds(*why.eligible - now);
  }
  return row;
}

ordered_json describe(const SchedulerSettings& settings, Scheduler& scheduler, TimePoint now) {
  const Depth& depth = scheduler.depth();
  ordered_json row = {{"requests", depth.requests}, {"cost", nullptr}};
  if (depth.cost != UINT64_MAX) row["cost"] = depth.cost;
  if (settings.auto_depth) row["auto"] = true;
  ordered_json all = {{"depth", row}};
  const ServerReport server = scheduler.server(now);
  if (server.capacity) {
    all["capacity"] = *server.capacity;
    all["capacity_source"] = server.capacity_source;
  }
  return all;
}

// Of a scheduler per target: what each of them does.
ordered_json describe(const SchedulerSettings& settings, const Dispatcher::Books& books) {
  ordered_json rows = ordered_json::array();
  for (const Dispatcher::Lane& lane : books.lanes) {
    if (!lane.target) continue;  // none has shown yet
    ordered_json row = {{device_kind(*lane.target), device_number(*lane.target)}};
    row.update(describe(settings, *lane.scheduler, books.now));
    row["queued"] = lane.scheduler->queued();
    row["outstanding"] = lane.scheduler->outstanding();
    ordered_json reports = ordered_json::array();
    for (std::uint32_t i = 0; i < books.table.size(); ++i) {
      const FlowState flow = lane.scheduler->flow(AppId{i});
      if (flow.queued == 0 && flow.outstanding == 0) continue;
      ordered_json report = {{"name", books.table[AppId{i}].name},
                             {"queued_requests", flow.queued}};
      add_report(report, lane.scheduler->report(AppId{i}, books.now));
      reports.push_back(std::move(report));
    }
    row["virtual_pfs"] = std::move(reports);
    rows.push_back(std::move(row));
  }
  return rows;
}

// The client nodes that share few connections among their applications.
ordered_json describe(const stage::ClientLimits& clients, TimePoint now) {
  ordered_json rows = ordered_json::array();
  for (std::uint32_t i = 0; i < clients.size(); ++i) {
    const stage::ClientLimits::Report report = clients.report(stage::ClientId{i}, now);
    if (report.connections == 0) continue;
    ordered_json row = {{"client", report.name}, {"connections", report.connections}};
    if (report.allowance) row["max_held"] = *report.allowance;
    row["excess_requests"] = report.refused;
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json describe(const Counters& counters) {
  return {{"upstream_failures", counters.upstream_failures.load()},
          {"framing_errors", counters.framing_errors.load()},
          {"requests_refused", counters.requests_refused.load()},
          {"excess_requests", counters.excess_requests.load()},
          {"slots_given_up", counters.slots_given_up.load()},
          {"late_bytes", counters.late_bytes.load()},
          {"names_refused", counters.names_refused.load()},
          {"jobs_not_registered", counters.jobs_not_registered.load()},
          {"client_stalls", counters.client_stalls.load()},
          {"server_stalls", counters.server_stalls.load()},
          {"bytes_to_server", counters.bytes_to_server.load()},
          {"bytes_to_client", counters.bytes_to_client.load()},
          {"ios_alive", counters.ios_alive.load()},
          {"write_back_by_file", counters.write_back_by_file.load()},
          {"write_back_unknown", counters.write_back_unknown.load()},
          {"read_by_file", counters.read_by_file.load()},
          {"read_unknown", counters.read_unknown.load()},
          {"connections_unknown_node", counters.connections_unknown_node.load()}};
}

}  // namespace

std::string status_text(const Settings& settings, const Reloads& reloads, SharedState& shared,
                        Dispatcher& dispatcher) {
  const Config& config = settings.config;
  ordered_json status = {
      {"pid", ::getpid()},
      {"listen", config.listen},
      {"upstream", shared.upstream ? net::to_string(*shared.upstream) : std::string(kOriginal)},
      {"protocol", config.protocol},
      {"policy", config.policy},
      {"hold_us", microseconds(shared.hold.load())},
      {"draining", shared.draining.load()}};
  status["reloads"] = {{"tried", reloads.tried}, {"failed", reloads.failed}};
  if (!reloads.last_error.empty()) status["reloads"]["last_error"] = reloads.last_error;
  const Counters& counters = shared.counters;
  status["connections"] = {{"open", counters.connections_open.load()},
                           {"total", counters.connections_total.load()},
                           {"refused", counters.connections_refused.load()}};
  dispatcher.inspect(shared.clock.now(), [&](const Dispatcher::Books& books) {
    const TimePoint now = books.now;
    status.update(describe(config.scheduler, *books.lanes.front().scheduler, now));
    std::size_t queued = 0;
    std::size_t outstanding = 0;
    for (const Dispatcher::Lane& lane : books.lanes) {
      queued += lane.scheduler->queued();
      outstanding += lane.scheduler->outstanding();
    }
    status["queued"] = queued;
    status["outstanding"] = outstanding;
    ordered_json rows = ordered_json::array();
    for (std::uint32_t i = 0; i < books.table.size(); ++i) {
      rows.push_back(describe(books.table[AppId{i}], books.lanes, AppId{i}, now));
    }
    status["virtual_pfs"] = std::move(rows);
    if (config.scheduler_per_target) status["targets"] = describe(config.scheduler, books);
    if (books.clients.size() > 0) status["clients"] = describe(books.clients, now);
    status["virtual_pfs_refused"] = books.table.refused();
  });
  status["counters"] = describe(counters);
  return status.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<void> write_status_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const auto problem = [&](const char* what) {
    const std::error_code error(errno, std::system_category());
    return fail(fmt::format("status file {}: {}: {}", path, what, error.message()), error);
  };
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  if (!file) return problem("cannot be written");
  file << text;
  file.close();
  if (!file) return problem("cannot be written");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return problem("cannot be replaced");
  return {};
}

}  // namespace vpfs::proxy
