#include "stage/config/scheduler_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedulers/policies/registry.h"
#include "stage/config/config_words.h"
#include "stage/config/policy_plugins.h"

namespace vpfs::stage {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr Duration kLongestStarvation = hours(24);
constexpr std::uint64_t kMostRequests = 1'000'000;

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
      reader.report(
          "depth",
          fmt::format("\"{}\" is not a depth: expected a number of requests, `auto`, or a mapping "
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
  if (classes.get("max_starvation", &starvation, milliseconds(1), kLongestStarvation)) {
    settings.max_starvation = starvation;
    if (settings.mode != TrafficClasses::Mode::strict) {
      classes.report("max_starvation", "applies only with mode strict");
    }
  }
}

}  // namespace

void read_scheduler(ConfigReader reader, Config& config, const Config* running) {
  read_plugins(reader, config);
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
  read_policies(reader, config);
  suggest_scheduler_words(reader);
  reader.finish();
  if (running != nullptr && reader.flawless() &&
      config.scheduler_per_target != running->scheduler_per_target) {
    reader.report("per_target", "cannot change while the proxy runs: restart it");
  }
}

}  // namespace vpfs::stage
