#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.h"
#include "base/config_reader.h"
#include "base/io_kind.h"
#include "base/units.h"
#include "schedulers/cost_model.h"
#include "schedulers/registry.h"
#include "stage/address.h"
#include "stage/allocations.h"
#include "stage/client_limits.h"
#include "stage/job_registry.h"
#include "stage/names.h"

namespace vpfs::stage {

struct VirtualPfsConfig {
  std::string name;  // may be a template: "job-{jobid}"
  Share share;       // without finish_by
  // The time for share.finish_bytes, from when the stage learns of it.
  Duration finish_within = Duration::zero();
  // On all stages together, each second; zero: no bound. Only rules of a coordinator have them.
  BytesPerSecond total_rate = {};
  std::uint64_t total_operations = 0;

  bool operator==(const VirtualPfsConfig&) const = default;
};

// A rule as an administrator writes it: NAME, COND and words such as "weight=4" or "realtime".
struct RuleText {
  std::string name;
  std::string condition;  // "jobid={a b}&op=read"; "": every request
  std::vector<std::string> words;

  bool operator==(const RuleText&) const = default;
};

enum class RuleOrigin : std::uint8_t { file, administrator, job, coordinator };

enum class RuleMode : std::uint8_t {
  enforce,
  shadow,  // holds nothing: reports what its limits would have held
};

// All conditions that are set must hold; one of the values of each.
struct Conditions {
  std::vector<std::string> clients = {};  // CIDR blocks or addresses
  // Name, patterns. Each hint must be there.
  std::vector<std::pair<std::string, std::vector<std::string>>> hints = {};
  std::vector<IoKind> kinds = {};
  std::vector<std::uint64_t> file_systems = {};
  std::vector<std::uint64_t> uids = {};
  std::vector<std::uint64_t> nodes = {};
  std::vector<std::uint64_t> targets = {};
  std::vector<std::uint64_t> owners = {};
  std::vector<std::string> directories = {};  // patterns
  // A job's, from the wire or from its registration. Job ids and accounts are patterns.
  std::vector<std::string> jobids = {};
  std::vector<std::string> accounts = {};
  std::vector<std::uint64_t> gids = {};

  bool operator==(const Conditions&) const = default;
};

struct RuleConfig {
  std::string name;  // no other rule has it
  RuleOrigin origin = RuleOrigin::file;
  RuleMode mode = RuleMode::enforce;
  RuleText text;                   // in its shortest form, for listing
  std::vector<Conditions> any_of;  // one of them must hold; none: every request matches
  std::string virtual_pfs;
  std::uint8_t traffic_class = 0;  // index into Config::scheduler.classes
  bool exempt = false;             // its requests are never held

  bool operator==(const RuleConfig&) const = default;
};

// The part of the configuration that every stage has, whatever its I/O.
struct Config {
  // The source of requests, as errors name it ("the protocol orangefs"), and the attributes that
  // they show. The stage's owner sets these before anything is read; the file does not have them.
  std::string source;
  Attributes shown;
  const Names* names = nullptr;  // null: rules can have numbers only; outlives the configuration
  // Where all requests come from one node: its addresses. Registered jobs are compared with these.
  // None: each request shows its client.
  std::vector<Address> node_addresses = {};

  // The known policies. The stage's owner may set them too.
  PolicyKinds policies = known_policies();
  // A coordinator's configuration: its rules are for stages that it knows nothing of. So they may
  // have the words of any policy, classes and virtual PFSes that stages declare, and totals over
  // all stages.
  bool is_site = false;
  std::string policy = "sfq";
  SchedulerSettings scheduler;
  CostModel::Settings cost;
  bool schedule_metadata = false;
  bool scheduler_per_target = false;
  std::vector<VirtualPfsConfig> virtual_pfs;
  std::vector<RuleConfig> rules;
  // A job id on the wire counts only if `jobs` has it, for that client (`jobs: registered`).
  bool only_registered_jobs = false;
  std::vector<RegisteredJob> jobs;

  std::size_t most_virtual_pfs = 10'000;  // made by templates
  // A virtual PFS made by a template is forgotten after this time without requests.
  Duration idle = std::chrono::hours(1);
  ClientLimits::Settings client_limits;
  Fallback fallback;  // when a coordinator is not heard of
  // For how long service elsewhere may hold the head of a queue. Nothing: ServiceSpeed says.
  std::optional<Duration> longest_delay;
};

// REQUIRES: config.policy is one of config.policies.
[[nodiscard]] const PolicyKind& policy_of(const Config& config);

// Reads the stage's keys of the mapping `limits`.
void read_stage_limits(ConfigReader& limits, Config& config);

// Reads the stage's keys of the mapping `control`.
void read_fallback(ConfigReader& control, Config& config);
void read_longest_delay(ConfigReader& control, Config& config);

// Requests that no rule matches belong to the last traffic class.
[[nodiscard]] std::uint8_t default_class(const Config& config);

}  // namespace vpfs::stage
