#include "proxy/status.h"

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
  return {{"p50", microseconds(histogram.quantile(0.50))},
          {"p99", microseconds(histogram.quantile(0.99))},
          {"max", microseconds(histogram.max())}};
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

ordered_json describe(const VirtualPfs& pfs, Scheduler& scheduler, AppId app, TimePoint now) {
  const FlowState flow = scheduler.flow(app);
  ordered_json row = {{"name", pfs.name}};
  if (pfs.removed) row["removed"] = true;
  add_share(row, pfs.share);
  add_report(row, scheduler.report(app, now));
  if (!pfs.refused_promise.empty()) row["refused_promise"] = pfs.refused_promise;
  row.update({{"queued_requests", flow.queued},
              {"queued_bytes", pfs.queued_bytes.count},
              {"outstanding_requests", pfs.outstanding_requests},
              {"outstanding_bytes", pfs.outstanding_bytes.count},
              {"done_requests", pfs.done_requests},
              {"done_bytes", pfs.done_bytes.count},
              {"failed_requests", pfs.failed_requests},
              {"refused_requests", pfs.refused_requests},
              {"given_up_requests", pfs.given_up_requests},
              {"wait_us", latencies(pfs.wait)},
              {"server_us", latencies(pfs.service)}});
  if (flow.oldest != nullptr) {
    const WaitReason why = scheduler.why_waiting(app, now);
    row["oldest_waits_us"] = microseconds(now - flow.oldest->arrival);
    row["oldest_waits_for"] = why.reason;
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

ordered_json describe(const Counters& counters) {
  return {{"upstream_failures", counters.upstream_failures.load()},
          {"framing_errors", counters.framing_errors.load()},
          {"requests_refused", counters.requests_refused.load()},
          {"slots_given_up", counters.slots_given_up.load()},
          {"client_stalls", counters.client_stalls.load()},
          {"server_stalls", counters.server_stalls.load()},
          {"bytes_to_server", counters.bytes_to_server.load()},
          {"bytes_to_client", counters.bytes_to_client.load()},
          {"ios_alive", counters.ios_alive.load()}};
}

}  // namespace

std::string status_text(const Settings& settings, const Reloads& reloads, SharedState& shared,
                        Dispatcher& dispatcher) {
  const Config& config = settings.config;
  ordered_json status = {{"pid", ::getpid()},
                         {"listen", config.listen},
                         {"upstream", net::to_string(shared.upstream)},
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
    status.update(describe(config.scheduler, books.scheduler, now));
    status["queued"] = books.scheduler.queued();
    status["outstanding"] = books.scheduler.outstanding();
    ordered_json rows = ordered_json::array();
    for (std::uint32_t i = 0; i < books.table.size(); ++i) {
      rows.push_back(describe(books.table[AppId{i}], books.scheduler, AppId{i}, now));
    }
    status["virtual_pfs"] = std::move(rows);
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
