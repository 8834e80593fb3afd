#include "stage/config/policy_plugins.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/joined.h"
#include "stage/config/share_config.h"

namespace vpfs::stage {
namespace {

using Kinds = std::vector<const PolicyKind*>;

// Keys of the mapping `scheduler`, where a policy's name is the key of its settings.
constexpr std::string_view kTaken[] = {"policy",  "depth",    "cost",      "classes",
                                       "plugins", "schedule", "per_target"};

bool is_word(std::string_view text) {
  const auto is_letter = [](char each) { return each >= 'a' && each <= 'z'; };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [&](char each) {
    return is_letter(each) || (each >= '0' && each <= '9') || each == '_';
  });
}

// "": there is none.
std::string problem_of(const PolicyKind& added, const Config& config) {
  if (!is_word(added.name)) {
    return fmt::format(
        "has a policy \"{}\": a name is a letter, then letters, digits and _, all lower case",
        added.name);
  }
  if (std::ranges::find(kTaken, added.name) != std::end(kTaken)) {
    return fmt::format("has a policy {}, which is the name of a key of `scheduler`", added.name);
  }
  if (find_policy(added.name, known_policies()) != nullptr) {
    return fmt::format("has a policy {}, which vpfs has itself", added.name);
  }
  if (find_policy(added.name, config.policies) != nullptr) {
    return fmt::format("has a policy {}, which another plugin has too", added.name);
  }
  const std::vector<std::string_view> words = share_words(config);
  for (const ShareWord& word : added.share_words) {
    if (!is_word(word.name) || std::ranges::find(words, word.name) != words.end()) {
      return fmt::format(
          "has a word of a share \"{}\": a new one of lower-case letters is expected", word.name);
    }
  }
  return "";
}

void add(const PolicyKind& kind, Config& config) {
  auto all = std::make_shared<Kinds>(config.policies.begin(), config.policies.end());
  all->push_back(&kind);
  std::ranges::sort(*all, {}, &PolicyKind::name);
  config.policies = *all;
  config.added_policies = std::move(all);
}

// Returns the problem; "": it is loaded.
std::string load(const std::string& path, ConfigReader& scheduler, Config& config) {
  const Result<PolicyLoader::Loaded> loaded = config.plugin_loader->load(path);
  if (!loaded) return loaded.error().message;
  for (const PolicyKind* const kind : loaded->policies) {
    if (std::string problem = problem_of(*kind, config); !problem.empty()) {
      return fmt::format("{} {}", path, problem);
    }
    add(*kind, config);
  }
  if (!loaded->warning.empty()) scheduler.warn("plugins", loaded->warning);
  std::vector<std::string_view> names;
  for (const PolicyKind* const kind : loaded->policies) names.push_back(kind->name);
  config.plugins.push_back({.path = path, .maker = loaded->maker, .policies = joined(names)});
  return "";
}

// What code of a policy throws; "": nothing.
template <typename Call>
std::string thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
  return "";
}

// Makes the policy for each traffic class, as a stage does later.
void try_policy(const PolicyKind& kind, const SchedulerSettings& settings) {
  const auto make = [&](RateLimits& limits, Scheduler::Part part) {
    std::unique_ptr<Policy> made = kind.make(settings, limits, part);
    if (made == nullptr) throw std::runtime_error("it makes nothing");
    return made;
  };
  const Scheduler trial(make, settings.depth, settings.auto_depth, settings.classes);
}

void report(ConfigReader& scheduler, Config& config, const PolicyKind& kind,
            const std::string& problem) {
  scheduler.report_alone("policy", fmt::format("the policy {} fails: {}", kind.name, problem));
  config.policy = Config().policy;  // what follows makes schedulers too
}

}  // namespace

void read_plugins(ConfigReader& scheduler, Config& config) {
  std::vector<std::string> paths;
  if (!scheduler.get("plugins", &paths)) return;
  if (config.plugin_loader == nullptr) {
    return scheduler.report_alone("plugins", "this program loads no plugins");
  }
  for (const std::string& path : paths) {
    const std::string problem = load(path, scheduler, config);
    if (!problem.empty()) return scheduler.report_alone("plugins", problem);
  }
}

void read_policies(ConfigReader& scheduler, Config& config) {
  for (const PolicyKind* const kind : config.policies) {
    if (kind->read == nullptr) continue;
    const std::string problem =
        thrown_by([&] { kind->read(scheduler, config.scheduler, kind->name == config.policy); });
    if (!problem.empty()) return report(scheduler, config, *kind, problem);
  }
  const PolicyKind& chosen = policy_of(config);
  if (find_policy(chosen.name, known_policies()) != nullptr) return;
  const std::string problem = thrown_by([&] { try_policy(chosen, config.scheduler); });
  if (!problem.empty()) report(scheduler, config, chosen, problem);
}

}  // namespace vpfs::stage
