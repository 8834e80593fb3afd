#include "proxy/config/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/endpoint.h"
#include "net/polling/busy_poll.h"
#include "protocols/registry.h"
#include "proxy/config/config_words.h"
#include "stage/config/job_config.h"
#include "stage/config/rule_config.h"
#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::string_view kAutomatic = "auto";
constexpr std::uint64_t kMostWorkers = 256;
constexpr std::size_t kProcessorsOfAWorker = 4;
constexpr std::size_t kMostAutomaticWorkers = 8;
constexpr Duration kShortest = milliseconds(1);
constexpr Duration kLongest = hours(24);

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  for (const Protocol& protocol : protocols()) names.emplace_back(protocol.name);
  return names;
}

// Checks the syntax only; names are resolved at the start.
void read_address(ConfigReader& reader, std::string_view key, std::string& address) {
  reader.require(key);
  if (!reader.get(key, &address)) return;
  const auto parts = net::split_address(address);
  if (!parts) {
    reader.report(key, parts.error().message);
  } else if (key == "upstream" && parts->port == 0) {
    reader.report(key, "a data server cannot have port 0");
  }
}

void check_unchanged(ConfigReader& reader, const Config& config, const Config& running) {
  const auto check = [&](std::string_view key, bool same) {
    control::require_same(reader, key, same, kProgramName);
  };
  check("listen", config.listen == running.listen);
  check("upstream", config.upstream == running.upstream);
  check("protocol", config.protocol == running.protocol);
  check("workers", config.workers == running.workers);
}

void read_servers(ConfigReader& reader, Config& config) {
  if (!reader.get("servers", &config.servers)) return;
  if (config.protocol != "beegfs") {
    return reader.report("servers",
                         fmt::format("the protocol {} has no other servers", config.protocol));
  }
  for (const std::string& server : config.servers) {
    if (!stage::AddressBlock::parse(server)) {
      reader.report("servers", fmt::format("'{}' is not an IP address or CIDR block", server));
    }
  }
}

// "auto" is nothing.
template <typename Value>
void read_automatic(ConfigReader& reader, std::string_view key, std::optional<Value>& to,
                    Value least, Value most) {
  Value value = {};
  std::string text;
  if (reader.is(key, kAutomatic)) {
    if (reader.get(key, &text)) to.reset();
  } else if (reader.get(key, &value, least, most)) {
    to = value;
  }
}

void read_proxy(ConfigReader reader, Config& config, const Config* running) {
  read_address(reader, "listen", config.listen);
  if (reader.is("upstream", kOriginal)) {
    reader.get("upstream", &config.upstream);
  } else {
    read_address(reader, "upstream", config.upstream);
  }
  reader.choose("protocol", &config.protocol, protocol_names());
  config.source = fmt::format("the protocol {}", config.protocol);
  config.shown = find_protocol(config.protocol)->attributes;
  read_servers(reader, config);
  read_automatic<std::uint64_t>(reader, "workers", config.workers, 1, kMostWorkers);
  read_automatic(reader, "busy_poll", config.busy_poll, Duration::zero(), net::BusyPoll::kMost);
  control::read_process(reader, config, kProgramName);
  reader.get("local_congestion", &config.local_congestion);
  reader.get("write_back_by_file", &config.write_back_by_file);
  suggest_proxy_words(reader);
  reader.finish();
  // A value that could not be read is reported already.
  if (running != nullptr && reader.flawless()) check_unchanged(reader, config, *running);
}

void read_restart(ConfigReader reader, Config& config, const Config* running) {
  reader.get("keep_over_crash", &config.keep_over_crash);
  if (running != nullptr && reader.flawless()) {
    control::require_same(reader, "keep_over_crash",
                          config.keep_over_crash == running->keep_over_crash, kProgramName);
  }
  control::read_restart(std::move(reader), config.restart,
                        running == nullptr ? nullptr : &running->restart, kProgramName);
}

void read_limits(ConfigReader reader, Config& config) {
  Limits& limits = config.limits;
  std::uint64_t count = limits.connections;
  if (reader.get("connections", &count, 1, 1'000'000)) limits.connections = count;
  count = limits.held_requests;
  if (reader.get("held_requests", &count, 1, 1'000'000)) limits.held_requests = count;
  // The limit must admit one request of the largest size.
  reader.get("held_bytes", &limits.held_bytes, {32 * kKiB}, {kGiB});
  stage::read_stage_limits(reader, config);
}

void read_timeouts(ConfigReader reader, Timeouts& timeouts) {
  reader.get("connect", &timeouts.connect, kShortest, kLongest);
  read_automatic<Duration>(reader, "hold", timeouts.hold, milliseconds(10), kLongest);
  reader.get("hold_min", &timeouts.hold_min, milliseconds(10), kLongest);
  reader.get("drain", &timeouts.drain, Duration::zero(), kLongest);
  reader.get("service", &timeouts.service, milliseconds(100), kLongest);
  reader.get("client_stall", &timeouts.client_stall, milliseconds(100), kLongest);
  reader.get("client_min_rate", &timeouts.client_min_rate, {1}, {Share::kMaxRate});
}

}  // namespace

std::size_t worker_count(const Config& config, std::size_t processors) {
  if (config.workers) return *config.workers;
  return std::clamp<std::size_t>(processors / kProcessorsOfAWorker, 1, kMostAutomaticWorkers);
}

Config parse_config(std::string_view text, ConfigErrors& errors, const Config* running,
                    const stage::Names* names, stage::PolicyLoader* plugins) {
  Config config;
  config.file_text = text;
  config.names = names;
  config.plugin_loader = plugins;
  ConfigReader reader(text, errors, stage::kKeysOfParts);
  reader.require("proxy");
  read_proxy(reader.child("proxy"), config, running);
  read_limits(reader.child("limits"), config);
  read_timeouts(reader.child("timeouts"), config.timeouts);
  read_restart(reader.child("restart"), config, running);
  control::read_control(reader, config, running, kProgramName);
  stage::read_scheduler(reader.child("scheduler"), config, running);
  stage::read_shares(reader, config);
  suggest_top_words(reader);
  stage::read_jobs(reader, config);
  stage::read_rules(reader, config);
  return config;
}

}  // namespace vpfs::proxy
