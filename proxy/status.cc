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

ordered_json describe(const VirtualPfs& pfs, const Scheduler& scheduler, AppId app, TimePoint now) {
  const Scheduler::FlowState flow = scheduler.flow(app);
  ordered_json row = {{"name", pfs.name},
                      {"weight", pfs.share.weight},
                      {"queued_requests", flow.queued},
                      {"queued_bytes", pfs.queued_bytes.count},
                      {"outstanding_requests", flow.outstanding},
                      {"outstanding_bytes", pfs.outstanding_bytes.count},
                      {"done_requests", pfs.done_requests},
                      {"done_bytes", pfs.done_bytes.count},
                      {"failed_requests", pfs.failed_requests},
                      {"refused_requests", pfs.refused_requests},
                      {"given_up_requests", pfs.given_up_requests},
                      {"wait_us", latencies(pfs.wait)},
                      {"server_us", latencies(pfs.service)}};
  if (flow.oldest != nullptr) {
    const Scheduler::WaitReason why = scheduler.why_waiting(app, now);
    row["oldest_waits_us"] = microseconds(now - flow.oldest->arrival);
    row["oldest_waits_for"] = why.reason;
  }
  return row;
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

std::string status_text(SharedState& shared, Dispatcher& dispatcher) {
  const TimePoint now = shared.clock.now();
  const Config& config = shared.config;
  ordered_json status = {{"pid", ::getpid()},
                         {"listen", config.listen},
                         {"upstream", net::to_string(shared.upstream)},
                         {"protocol", config.protocol},
                         {"policy", config.policy},
                         {"depth", {{"requests", config.depth.requests}, {"cost", nullptr}}},
                         {"hold_us", microseconds(shared.hold.load())},
                         {"draining", shared.draining.load()}};
  if (config.depth.cost != UINT64_MAX) status["depth"]["cost"] = config.depth.cost;
  const Counters& counters = shared.counters;
  status["connections"] = {{"open", counters.connections_open.load()},
                           {"total", counters.connections_total.load()},
                           {"refused", counters.connections_refused.load()}};
  dispatcher.inspect([&](const Dispatcher::Books& books) {
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
