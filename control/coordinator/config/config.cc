#include "control/coordinator/config/config.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/config_file.h"
#include "base/log/log_config.h"
#include "base/named_file.h"
#include "control/allocation/allocation_policy.h"
#include "control/metrics/http_tls.h"
#include "control/wire/leader/address_list.h"
#include "control/wire/rights.h"
#include "schedulers/share.h"

namespace vpfs::coordinator {
namespace {

using allocation::Amounts;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;

// What other systems call the keys.
constexpr std::array<ConfigWord, 8> kWords = {{{"interval", "period"},
                                               {"cycle_time", "period"},
                                               {"algorithm", "policy"},
                                               {"state", "journal"},
                                               {"servers", "stages.dial"},
                                               {"proxies", "stages.dial"},
                                               {"applications", "jobs"},
                                               {"bandwidth", "capacity.bytes"}}};

constexpr std::uint64_t kMostOperations = std::uint64_t{1} << 40;

void read_amounts(ConfigReader& reader, Amounts& amounts) {
  BytesPerSecond bytes = {};
  if (reader.get("bytes", &bytes, {1}, {Share::kMaxRate})) amounts.bytes = bytes.count;
  reader.get("operations", &amounts.operations, 1, kMostOperations);
  reader.get("metadata_operations", &amounts.metadata_operations, 1, kMostOperations);
}

void read_policy(ConfigReader& reader, Config& config) {
  std::vector<std::string> names;
  for (const allocation::AllocationPolicyKind* kind : allocation::policies())
    names.emplace_back(kind->name);
  reader.choose("policy", &config.policy, names);
  ConfigReader capacity = reader.child("capacity");
  read_amounts(capacity, config.capacity);
  ConfigReader floor = reader.child("floor");
  read_amounts(floor, config.floor);
  const bool is_missing = config.capacity == Amounts{} && capacity.flawless();
  if (config.policy == "psfa" && is_missing && !reader.has("parent")) {
    reader.report("capacity", "is missing: the policy psfa needs a capacity to divide");
  }
  if (config.policy == "total" && reader.has("capacity")) {
    reader.report("capacity",
                  "is for the policy psfa, not total: `total_rate` limits a job on all stages "
                  "together");
  }
}

void read_times(ConfigReader& reader, Config& config) {
  std::string text;
  if (reader.is("period", "0")) {
    reader.get("period", &text);
    config.period = Duration::zero();
  } else {
    reader.get("period", &config.period, milliseconds(1), minutes(1));
  }
  reader.get("lease", &config.lease, milliseconds(10), hours(1));
  // An aggregator has answered before its parent's deadline.
  const int parts = reader.has("parent") ? 4 : 2;
  config.deadline = std::max<Duration>(config.period / parts, milliseconds(5));
  if (config.period == Duration::zero()) config.deadline = config.lease / 3;
  reader.get("deadline", &config.deadline, microseconds(100), minutes(1));
  reader.get("transit", &config.transit, milliseconds(1), hours(1));
  std::uint64_t cycles = config.silent_cycles;
  if (reader.get("silent_cycles", &cycles, 1, 1'000'000)) {
    config.silent_cycles = static_cast<std::uint32_t>(cycles);
  }
  if (config.lease < 3 * config.period) {
    reader.report("lease", fmt::format("must be at least three periods ({}): a late cycle would "
                                       "leave stages without their limits",
                                       to_string(3 * config.period)));
  } else if (config.lease < 2 * config.deadline) {
    reader.report("lease", fmt::format("must be at least two deadlines ({}): a stage that hangs "
                                       "would leave the others without their limits",
                                       to_string(2 * config.deadline)));
  }
  if (reader.choose("cycle", &text, {"fused", "four"})) {
    config.cycle = text == "four" ? CycleKind::four : CycleKind::fused;
  }
}

void read_state(ConfigReader& reader, Config& config) {
  config.store = read_store(reader, config.name);
  if (!config.store) reader.require("journal");
  if (reader.get("journal", &config.journal) && config.store) {
    reader.report("journal",
                  "is for a coordinator that is alone: with `store` its rules are there");
  }
}

// After all that it needs.
void read_members(ConfigReader& reader, Config& config) {
  if (!reader.has("members")) return;
  std::string text;
  if (reader.is_scalar("members")) {
    if (!reader.choose("members", &text, {"auto"})) return;
    config.members.emplace();
  } else {
    ConfigReader members = reader.child("members");
    std::uint64_t port = 0;
    members.require("port");
    if (!members.get("port", &port, 1, 65535)) return;
    config.members.emplace(MembersConfig{.port = static_cast<std::uint16_t>(port)});
    if (config.control.tcp.empty()) {
      members.report("port", "is without `control.tcp`: members meet at the socket then");
    }
  }
  const auto needs = [&](bool is_there, const char* key, const char* why) {
    if (!is_there) reader.report("members", fmt::format("needs `{}`: {}", key, why));
  };
  needs(config.store.has_value(), "store", "members find the one that leads in it");
  needs(!config.control.socket.empty() || !config.control.tcp.empty(), "control",
        "members reach the one that leads at its addresses");
  if (config.parent) {
    reader.report("members", "is beside `parent`: the members of a site have no parent");
  }
}

void read_jobs(ConfigReader& reader, Config& config) {
  reader.for_each("jobs", [&](ConfigReader& entry) {
    JobConfig job;
    entry.require("name");
    entry.get("name", &job.name);
    std::uint64_t weight = 0;
    if (entry.get("weight", &weight, 1, Share::kMaxWeight)) {
      job.weight = static_cast<std::uint32_t>(weight);
    }
    BytesPerSecond rate = {};
    if (entry.get("total_rate", &rate, {1}, {Share::kMaxRate})) job.most.bytes = rate.count;
    entry.get("total_operations", &job.most.operations, 1, kMostOperations);
    if (entry.get("limit", &rate, {1}, {Share::kMaxRate})) job.limit.bytes = rate.count;
    entry.get("operations_limit", &job.limit.operations, 1, kMostOperations);
    for (const auto& [key, instead] :
         {std::pair("limit", "total_rate"), {"operations_limit", "total_operations"}}) {
      if (config.policy == "static" || !entry.has(key)) continue;
      entry.report(key, fmt::format("is for the policy static, not {}: `{}` limits the job on all "
                                    "stages together",
                                    config.policy, instead));
    }
    const auto same = [&](const JobConfig& other) { return other.name == job.name; };
    if (!job.name.empty() && std::ranges::any_of(config.jobs, same)) {
      entry.report("name", fmt::format("\"{}\" is given twice", job.name));
    }
    config.jobs.push_back(std::move(job));
  });
}

void read_tls_files(ConfigReader& reader, net::TlsFiles& files) {
  reader.get("certificate", &files.certificate);
  reader.get("key", &files.key);
  reader.get("ca", &files.ca);
}

std::optional<control::PortAddress> read_address(ConfigReader& reader) {
  std::string text;
  reader.require("address");
  if (!reader.get("address", &text)) return std::nullopt;
  auto address = control::parse_port_address(text);
  if (address) return std::move(*address);
  reader.report("address", address.error().message);
  return std::nullopt;
}

void need_tls(ConfigReader& reader, const net::TlsFiles& files, const char* key = "address") {
  if (!files.certificate.empty() && !files.key.empty() && !files.ca.empty()) return;
  reader.report(key, "TCP needs `certificate`, `key` and `ca` beside it");
}

void read_stages(ConfigReader& reader, Config& config) {
  reader.require("stages");
  ConfigReader stages = reader.child("stages");
  read_tls_files(stages, config.dialling);
  stages.for_each("dial", [&](ConfigReader& entry) {
    DialledStage stage;
    entry.get("name", &stage.name);
    const auto same_name = [&](const DialledStage& other) { return other.name == stage.name; };
    if (!stage.name.empty() && std::ranges::any_of(config.dial, same_name)) {
      entry.report("name", fmt::format("\"{}\" is given twice", stage.name));
    }
    if (const auto address = read_address(entry)) {
      stage.address = *address;
      if (!stage.address.is_unix()) need_tls(entry, config.dialling);
      const auto same = [&](const DialledStage& other) { return other.address == stage.address; };
      if (std::ranges::any_of(config.dial, same)) {
        entry.report("address", "is given twice: expected one entry for each stage");
      }
    }
    config.dial.push_back(std::move(stage));
  });
  if (stages.has("listen")) {
    ConfigReader listen = stages.child("listen");
    control::read_port_keys(listen, config.listen);
    if (!config.listen.audit.empty()) {
      listen.report("audit",
                    "only the control port has an audit log: what stages ask changes nothing");
    }
    if (!config.listen.enabled() && listen.flawless()) {
      listen.report("", "has neither a socket nor tcp, so no stage can dial");
    }
  }
  const bool is_there = reader.has("stages");
  if (is_there && config.dial.empty() && !config.listen.enabled() && stages.flawless()) {
    stages.report("", "has neither `dial` nor `listen`, so there are no stages");
  }
}

void read_parent(ConfigReader& reader, Config& config) {
  if (!reader.has("parent")) return;
  if (config.name.empty())
    reader.report("name", "is missing: the parent knows the aggregator by it");
  ConfigReader parent = reader.child("parent");
  if (config.dialling.certificate.empty()) read_tls_files(parent, config.dialling);
  const char* const key = parent.has("addresses") ? "addresses" : "address";
  parent.require(key);
  if (parent.has("address") && parent.has("addresses")) {
    parent.report("address", "is beside `addresses`: expected one of them");
  }
  if (parent.has("address") && !parent.is_scalar("address")) {
    return parent.report("address", "is a list: expected one address, or `addresses`");
  }
  std::vector<control::PortAddress> addresses = control::read_addresses(parent, key);
  if (control::any_is_tcp(addresses)) need_tls(parent, config.dialling, key);
  if (!addresses.empty()) config.parent.emplace(std::move(addresses));
}

void check_host(const Config& config, ConfigErrors& errors) {
  check_log_here(config.log, errors, "log");
  control::check_port_config(config.control, errors);
  control::check_http_tls(config.http, config.control, errors);
  control::check_port_folders(config.control, "control", errors);
  control::check_port_folders(config.listen, config.listen_key, errors);
  if (const auto problem = problem_of_place(config.journal)) errors.add("journal", *problem);
  if (config.listen.enabled()) {
    if (const auto access = control::resolve_access(config.listen, {}, config.listen_key);
        !access) {
      errors.add(access.error().place(), access.error().text());
    }
  }
  if (config.store && !config.control.enabled() && config.store->addresses.empty()) {
    errors.warn("control",
                "is missing: standbys cannot watch this coordinator, so one of them takes "
                "over only when store.lease has ended");
  }
  if (!config.dials_tcp()) return;
  const auto tls = net::TlsContext::load(config.dialling, net::TlsSide::client);
  if (!tls) errors.add("stages.certificate", tls.error().message);
}

}  // namespace

bool Config::dials_tcp() const {
  const auto is_tcp = [](const DialledStage& stage) { return !stage.address.is_unix(); };
  return std::ranges::any_of(dial, is_tcp) || (parent && control::any_is_tcp(parent->addresses));
}

Config parse_config(std::string_view text, ConfigErrors& errors) {
  Config config;
  ConfigReader reader(text, errors);
  reader.suggest(kWords);
  reader.get("name", &config.name);
  read_policy(reader, config);
  read_times(reader, config);
  reader.get("cost_model", &config.cost_model);
  read_state(reader, config);
  read_jobs(reader, config);
  read_stages(reader, config);
  read_parent(reader, config);
  config.control = control::read_port_config(
      reader, [&](ConfigReader& control) { control::read_http(control, config.http); });
  read_members(reader, config);
  read_log(reader, "vpfs-coordinator", config.log, config.log_level);
  return config;
}

std::optional<Config> load_config_file(ConfigErrors& errors) {
  return load_config(errors, [](std::string_view text, ConfigErrors& found) {
    Config config = parse_config(text, found);
    if (found.empty()) check_host(config, found);
    return config;
  });
}

}  // namespace vpfs::coordinator
