#include "stage/scheduler_config.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "schedulers/registry.h"
#include "stage/config_words.h"
#include "stage/template_name.h"

namespace vpfs::stage {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kLongest = hours(24);
constexpr std::uint64_t kMostRequests = 1'000'000;
constexpr BytesPerSecond kLeastRate = {1};
constexpr BytesPerSecond kMostRate = {Share::kMaxRate};

void read_factor(ConfigReader& reader, std::string_view key, std::uint32_t& permille) {
  double factor = 1.0;
  if (reader.get(key, &factor, 0.001, 1000.0)) {
    permille = static_cast<std::uint32_t>(std::lround(factor * 1000.0));
  }
}

void read_cost(ConfigReader cost, CostModel::Settings& settings) {
  cost.get("per_request", &settings.per_request, {0}, {kGiB});
  read_factor(cost, "read_factor", settings.read_factor_permille);
  read_factor(cost, "write_factor", settings.write_factor_permille);
  cost.get("metadata", &settings.metadata, {0}, {kGiB});
}

void read_depth(ConfigReader& reader, SchedulerSettings& settings) {
  if (reader.is("depth", "auto")) {
    settings.auto_depth.emplace();
    return;
  }
  std::uint64_t requests = settings.depth.requests;
  if (std::string text; reader.is_scalar("depth") && reader.get("depth", &text)) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
      reader.report("depth", fmt::format("\"{}\" is not a number of requests, `auto`, or a mapping "
                                         "{{requests: ..., bytes: ...}}",
                                         text));
    } else if (reader.get("depth", &requests, 1, kMostRequests)) {
      settings.depth.requests = static_cast<std::uint32_t>(requests);
    }
    return;
  }
  ConfigReader depth = reader.child("depth");
  if (depth.is("requests", "auto")) {
    settings.auto_depth.emplace();
  } else if (depth.get("requests", &requests, 1, kMostRequests)) {
    settings.depth.requests = static_cast<std::uint32_t>(requests);
  }
  Bytes bytes = {};
  if (depth.get("bytes", &bytes, {1}, {kMaxCost})) settings.depth.cost = bytes.count;
}

void read_classes(ConfigReader classes, TrafficClasses& settings) {
  std::string mode = "none";
  classes.choose("mode", &mode, {"none", "apportion", "strict"});
  settings.mode = mode == "none"        ? TrafficClasses::Mode::none
                  : mode == "apportion" ? TrafficClasses::Mode::apportion
                                        : TrafficClasses::Mode::strict;
  const bool apportioned = settings.mode == TrafficClasses::Mode::apportion;
  classes.for_each("names", [&](ConfigReader& entry) {
    TrafficClasses::Class made;
    entry.require("name");
    entry.get("name", &made.name);
    std::uint64_t share = 1;
    if (entry.get("share", &share, 1, Share::kMaxWeight)) {
      made.share = static_cast<std::uint32_t>(share);
      if (!apportioned) entry.report("share", "applies only with mode apportion");
    }
    if (std::ranges::find(settings.classes, made.name, &TrafficClasses::Class::name) !=
        settings.classes.end()) {
      entry.report("name", fmt::format("the class '{}' is declared twice", made.name));
    }
    settings.classes.push_back(std::move(made));
  });
  if (settings.classes.size() > TrafficClasses::kMost) {
    classes.report("names", fmt::format("at most {} classes", TrafficClasses::kMost));
    settings.classes.resize(TrafficClasses::kMost);
  }
  if (settings.mode != TrafficClasses::Mode::none && settings.classes.size() < 2) {
    classes.report("names", fmt::format("mode {} needs at least two classes", mode));
  }
  Duration starvation = {};
  if (classes.get("max_starvation", &starvation, milliseconds(1), kLongest)) {
    settings.max_starvation = starvation;
    if (settings.mode != TrafficClasses::Mode::strict) {
      classes.report("max_starvation", "applies only with mode strict");
    }
  }
}

// Reports a key that the policy would ignore.
bool allowed(ConfigReader& entry, std::string_view key, const PolicyKind& policy, bool is_known) {
  if (!entry.has(key)) return false;
  if (!is_known) entry.report(key, fmt::format("would be ignored by the policy {}", policy.name));
  return is_known;
}
bool allowed(ConfigReader& entry, std::string_view key, const PolicyKind& policy,
             ShareField field) {
  return allowed(entry, key, policy, policy.knows(field));
}

void read_limits(ConfigReader& entry, const PolicyKind& policy, Share& share) {
  const bool has_rate = allowed(entry, "rate", policy, ShareField::rate) &&
                        entry.get("rate", &share.rate, kLeastRate, kMostRate);
  const bool has_operations = allowed(entry, "operations", policy, ShareField::operations) &&
                              entry.get("operations", &share.operations, 1, 1'000'000'000);
  const bool has_burst = entry.get("burst", &share.burst, {1}, {16 * kGiB});
  if (has_burst && !has_rate && !entry.has("finish")) entry.report("burst", "needs a rate");
  if (entry.get("burst_operations", &share.burst_operations, 1, 1'000'000'000) && !has_operations) {
    entry.report("burst_operations", "needs `operations`");
  }
  if (allowed(entry, "realtime", policy, ShareField::realtime) &&
      entry.get("realtime", &share.realtime) && !has_rate && !has_operations) {
    entry.report("realtime", "needs a rate or `operations`");
  }
  if (allowed(entry, "min", policy, ShareField::min)) {
    entry.get("min", &share.min, kLeastRate, kMostRate);
  }
  if (has_rate && share.min > share.rate) entry.report("min", "is more than `rate`");
  std::uint64_t rank = 0;
  if (allowed(entry, "rank", policy, ShareField::rank) &&
      entry.get("rank", &rank, 0, Share::kMaxRank)) {
    share.rank = static_cast<std::uint8_t>(rank);
  }
}

void read_deadlines(ConfigReader& entry, const PolicyKind& policy, VirtualPfsConfig& made) {
  Share& share = made.share;
  if (allowed(entry, "latency", policy, ShareField::latency)) {
    entry.get("latency", &share.latency, microseconds(1), kLongest);
  } else if (share.rate.count > 0 && policy.knows(ShareField::latency)) {
    entry.report("rate", "the policy needs a latency with it: together they are a promise");
  }
  if (!allowed(entry, "finish", policy, ShareField::finish)) return;
  ConfigReader finish = entry.child("finish");
  finish.require("bytes");
  finish.get("bytes", &share.finish_bytes, {1}, {std::uint64_t{1} << 60});
  finish.require("within");
  finish.get("within", &made.finish_within, milliseconds(1), hours(24 * 365));
  if (share.rate.count > 0) finish.report("bytes", "cannot stand beside a rate");
}

// Reads the words that only single policies know.
void read_own_words(ConfigReader& entry, const Config& config, const PolicyKind& policy,
                    Share& share) {
  for (const ShareWord& word : policy.share_words) {
    std::uint64_t value = 0;
    if (entry.get(word.name, &value, word.least, word.most)) {
      share.own.push_back({.word = word.name, .value = value});
    }
  }
  for (const PolicyKind* const other : config.policies) {
    for (const ShareWord& word : other->share_words) {
      (void)allowed(entry, word.name, policy, policy.knows(word.name));
    }
  }
}

VirtualPfsConfig read_share(const std::string& name, ConfigReader& entry, const Config& config) {
  VirtualPfsConfig made = {.name = name, .share = {}};
  std::uint64_t weight = 1;
  if (entry.get("weight", &weight, 1, Share::kMaxWeight)) {
    made.share.weight = static_cast<std::uint32_t>(weight);
  }
  const PolicyKind& policy = policy_of(config);
  read_limits(entry, policy, made.share);
  read_deadlines(entry, policy, made);
  read_own_words(entry, config, policy, made.share);
  suggest_share_words(entry, config);
  return made;
}

}  // namespace

void read_scheduler(ConfigReader reader, Config& config, const Config* running) {
  const std::vector<std::string_view> names = scheduler_names(config.policies);
  reader.choose("policy", &config.policy, {names.begin(), names.end()});
  read_depth(reader, config.scheduler);
  config.cost.per_request = policy_of(config).per_request;
  read_cost(reader.child("cost"), config.cost);
  read_classes(reader.child("classes"), config.scheduler.classes);
  std::vector<std::string> scheduled;
  if (reader.get("schedule", &scheduled)) {
    const bool has_io = std::ranges::find(scheduled, "io") != scheduled.end();
    config.schedule_metadata = std::ranges::find(scheduled, "metadata") != scheduled.end();
    if (!has_io || scheduled.size() != (config.schedule_metadata ? 2 : 1)) {
      reader.report("schedule", "must be [io] or [io, metadata]");
    } else if (config.schedule_metadata && !config.shown.has(Attribute::metadata)) {
      reader.report("schedule", fmt::format("{} has no metadata requests", config.source));
    }
  }
  reader.get("per_target", &config.scheduler_per_target);
  if (config.scheduler_per_target && !config.shown.has(Attribute::target)) {
    reader.report("per_target", fmt::format("{} shows no targets", config.source));
  }
  for (const PolicyKind* const policy : config.policies) {
    if (policy->read != nullptr) policy->read(reader, config.scheduler);
  }
  suggest_scheduler_words(reader);
  reader.finish();
  if (running != nullptr && reader.flawless() &&
      config.scheduler_per_target != running->scheduler_per_target) {
    reader.report("per_target", "cannot change while the proxy runs: restart it");
  }
}

void read_shares(ConfigReader& reader, Config& config) {
  const std::unique_ptr<Scheduler> trial = make_scheduler(policy_of(config), config.scheduler);
  std::uint32_t next = 0;
  reader.for_each_named("virtual_pfs", [&](const std::string& name, ConfigReader& entry) {
    VirtualPfsConfig made = read_share(name, entry, config);
    if (const auto problem = template_problem(name)) entry.report("", *problem);
    Share share = made.share;
    share.finish_by = TimePoint{} + made.finish_within;
    // Virtual PFSes of templates are admitted one by one later: their number is not known here.
    if (template_fields(name).empty()) {
      const Result<void> promised = trial->set_share(AppId{next++}, share, {});
      if (!promised) {
        entry.report(entry.has("latency") ? "latency" : "finish", promised.error().message);
      }
    }
    config.virtual_pfs.push_back(std::move(made));
  });
}

}  // namespace vpfs::stage
