#include "proxy/status.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "net/endpoint.h"

namespace vpfs::proxy {
namespace {

using nlohmann::ordered_json;

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
          {"polls_found", counters.polls_found.load()},
          {"polls_in_vain", counters.polls_in_vain.load()},
          {"write_back_by_file", counters.write_back_by_file.load()},
          {"write_back_unknown", counters.write_back_unknown.load()},
          {"read_by_file", counters.read_by_file.load()},
          {"read_unknown", counters.read_unknown.load()},
          {"connections_unknown_node", counters.connections_unknown_node.load()}};
}

}  // namespace

std::string status_text(const WorkerSettings& settings, SharedState& shared,
                        const control::HostStatus& host) {
  const Config& config = settings.config;
  ordered_json status = {
      {"pid", ::getpid()},
      {"listen", config.listen},
      {"upstream", shared.upstream ? net::to_string(*shared.upstream) : std::string(kOriginal)},
      {"protocol", config.protocol},
      {"policy", config.policy},
      {"hold_us", microseconds_of(shared.hold.load())},
      {"draining", shared.draining.load()},
      {"bypass", host.snapshot.bypass}};
  control::add_reloads(status, host.reloads);
  const Counters& counters = shared.counters;
  status["connections"] = {{"open", counters.connections_open.load()},
                           {"total", counters.connections_total.load()},
                           {"refused", counters.connections_refused.load()},
                           {"kept", shared.keeper ? shared.keeper->kept() : 0}};
  control::add_stage(status, config, host.snapshot);
  control::add_coordinator(status, host);
  status["counters"] = describe(counters);
  return control::to_text(status);
}

}  // namespace vpfs::proxy
