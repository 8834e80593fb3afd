#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "protocols/registry.h"
#include "proxy/client_limits.h"
#include "proxy/job_registry.h"
#include "schedulers/cost_model.h"
#include "schedulers/registry.h"

namespace vpfs::proxy {

struct Limits {
  std::size_t connections = 10'000;
  // Per connection. Beyond it reading stops, or if an I/O of it is at the data server goes on up to
  // four times of it.
  std::size_t held_requests = 4096;
  Bytes held_bytes = {kMiB};         // the same of the messages
  std::size_t virtual_pfs = 10'000;  // that templates may make
  ClientLimits::Settings per_client;
};

struct Timeouts {
  Duration connect = std::chrono::seconds(5);
  std::optional<Duration> hold;  // nothing: automatic
  // However short a time-out clients are told, requests are held for so long.
  Duration hold_min = std::chrono::seconds(60);
  Duration drain = std::chrono::seconds(20);
  // An outstanding I/O without progress for so long is given up (its slot, not its connection).
  Duration service = std::chrono::seconds(60);
  // What clients may keep the data server waiting, each minute, by taking or sending file data more
  // slowly than the rate; then they give their slots back (see StallBudgets).
  Duration client_stall = std::chrono::seconds(2);
  BytesPerSecond client_min_rate = {kMiB};
};

struct VirtualPfsConfig {
  std::string name;  // may be a template: "job-{jobid}"
  Share share;       // without finish_by
  // How long share.finish_bytes may take, from when the proxy learns of it.
  Duration finish_within = Duration::zero();

  bool operator==(const VirtualPfsConfig&) const = default;
};

// All conditions that are set must hold; one of the values of each.
struct RuleConfig {
  std::vector<std::string> clients;                        // CIDR blocks or addresses
  std::vector<std::pair<std::string, std::string>> hints;  // name, pattern
  std::optional<RequestKind> kind;
  std::vector<std::uint64_t> file_systems;
  std::vector<std::uint64_t> uids;
  std::vector<std::uint64_t> nodes;
  std::vector<std::uint64_t> targets;
  std::vector<std::uint64_t> owners;
  std::vector<std::string> directories;  // patterns
  std::string virtual_pfs;
  std::uint8_t traffic_class = 0;  // index into Config::scheduler.classes
};

inline constexpr std::string_view kOriginal = "original";

struct Config {
  std::string listen;
  std::string upstream;  // kOriginal: where each client meant to go
  std::string protocol = "orangefs";
  // Addresses or CIDR blocks of the file system's other servers, whose I/O passes unscheduled.
  std::vector<std::string> servers;
  std::uint64_t workers = 1;
  std::string status_file;
  Duration status_interval = std::chrono::seconds(5);
  std::string log_level = "info";
  std::string upstream_congestion = "cubic";
  Limits limits;
  Timeouts timeouts;
  std::string policy = "sfq";
  SchedulerSettings scheduler;
  CostModel::Settings cost;
  bool schedule_metadata = false;
  bool scheduler_per_target = false;
  // Whether what a node's kernel writes back belongs to the only user of its file.
  bool write_back_by_file = true;
  std::vector<VirtualPfsConfig> virtual_pfs;
  std::vector<RuleConfig> rules;
  // Nothing: every job id counts (`jobs: trust`).
  std::optional<std::vector<RegisteredJob>> registered_jobs;
};

// Reads conf/proxy.yaml's schema. Whatever is wrong goes into `errors`; the result is only good
// when that is empty. Does no I/O: what the host lacks is for check_host(), and rules that never
// apply are for warn_of_hidden_rules().
// With `running`, the configuration of a proxy that runs, what cannot change meanwhile is reported.
[[nodiscard]] Config parse_config(std::string_view text, ConfigErrors& errors,
                                  const Config* running = nullptr);

// Requests that no rule matches belong to the last traffic class.
[[nodiscard]] std::uint8_t default_class(const Config& config);

// The attribute of a request that a field of a template may name: {"uid"}, ...
[[nodiscard]] std::optional<Attribute> template_attribute(std::string_view field);

// What is wrong with the braces of a name that may be a template; nothing when nothing is.
[[nodiscard]] std::optional<std::string> template_problem(std::string_view name);

// The names in braces of a template: {"jobid"} for "job-{jobid}".
[[nodiscard]] std::vector<std::string> template_fields(std::string_view name);

}  // namespace vpfs::proxy
