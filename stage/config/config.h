#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.h"
#include "base/config_reader.h"
#include "base/io_kind.h"
#include "base/units.h"
#include "schedulers/cost_model.h"
#include "schedulers/policies/registry.h"
#include "stage/config/client_limit_settings.h"
#include "stage/config/fallback.h"
#include "stage/rules/address.h"
#include "stage/rules/job_registry.h"
#include "stage/rules/names.h"
#include "stage/rules/rule_types.h"

namespace vpfs::stage {

class PolicyLoader;

// A file with policies that is loaded.
struct PluginConfig {
  std::string path;
  std::string maker;     // where it is from, as it says
  std::string policies;  // their names, for people

  bool operator==(const PluginConfig&) const = default;
};

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
  // Loads `scheduler.plugins`, whose policies join those above. Null: plugins are refused. The
  // stage's owner sets it; it outlives the configuration.
  PolicyLoader* plugin_loader = nullptr;
  std::vector<PluginConfig> plugins = {};
  std::shared_ptr<const std::vector<const PolicyKind*>> added_policies;  // owns `policies` then
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
  ClientLimitSettings client_limits;
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
