#include "proxy/config_changes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "proxy/config_summary.h"
#include "schedulers/registry.h"

namespace vpfs::proxy {
namespace {

using Lines = std::vector<std::string>;

// Keys of the file with their values, in the file's order. A key that is not set is missing or has
// an empty value.
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string joined(const Lines& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view value_of(const Settings& settings, std::string_view key) {
  const auto found = std::ranges::find(settings, key, &Settings::value_type::first);
  return found == settings.end() ? std::string_view() : found->second;
}

// "weight 4 -> 8"
Lines differences(const Settings& before, const Settings& after) {
  Lines lines;
  const auto add = [&](std::string_view key, std::string_view was, std::string_view is) {
    const auto shown = [](std::string_view value) { return value.empty() ? "none" : value; };
    if (was != is) lines.push_back(fmt::format("{} {} -> {}", key, shown(was), shown(is)));
  };
  for (const auto& [key, value] : after) add(key, value_of(before, key), value);
  for (const auto& [key, value] : before) {
    const bool compared =
        std::ranges::find(after, key, &Settings::value_type::first) != after.end();
    if (!compared) add(key, value, {});
  }
  return lines;
}

std::string factor(std::uint32_t permille) {
  return fmt::format("{}", permille / 1000.0);
}

std::string switched(bool on) {
  return on ? "true" : "false";
}

std::string most_held(const stage::ClientLimits::Settings& limits) {
  if (!limits.enabled) return "off";
  return limits.most ? std::to_string(*limits.most) : "auto";
}

void add_classes(Settings& settings, const TrafficClasses& classes) {
  const bool apportioned = classes.mode == TrafficClasses::Mode::apportion;
  Lines names;
  for (const TrafficClasses::Class& each : classes.classes) {
    names.push_back(apportioned ? fmt::format("{} {}", each.name, each.share) : each.name);
  }
  settings.emplace_back("scheduler.classes.mode", classes.mode == TrafficClasses::Mode::none
                                                      ? "none"
                                                  : apportioned ? "apportion"
                                                                : "strict");
  settings.emplace_back("scheduler.classes.names", fmt::format("{}", fmt::join(names, " : ")));
  settings.emplace_back("scheduler.classes.max_starvation",
                        classes.max_starvation ? to_string(*classes.max_starvation) : "");
}

void add_scheduler(Settings& settings, const Config& config) {
  const SchedulerSettings& scheduler = config.scheduler;
  const bool has_cost_limit = scheduler.depth.cost < Depth().cost;
  const CostModel::Settings& cost = config.cost;
  const Settings all = {
      {"policy", config.policy},
      {"depth.requests", scheduler.auto_depth ? "auto" : std::to_string(scheduler.depth.requests)},
      {"depth.bytes", has_cost_limit ? to_string(Bytes{scheduler.depth.cost}) : ""},
      {"cost.per_request", to_string(cost.per_request)},
      {"cost.read_factor", factor(cost.read_factor_permille)},
      {"cost.write_factor", factor(cost.write_factor_permille)},
      {"cost.metadata", to_string(cost.metadata)},
      {"schedule", config.schedule_metadata ? "[io, metadata]" : "[io]"},
      {"per_target", switched(config.scheduler_per_target)}};
  for (const auto& [key, value] : all) settings.emplace_back("scheduler." + key, value);
  add_classes(settings, scheduler.classes);
}

std::string fallback_of(const Config& config) {
  switch (config.fallback.mode) {
    case stage::Fallback::Mode::configured:
      return "configured";
    case stage::Fallback::Mode::last:
      return "last";
    case stage::Fallback::Mode::rate:
      return to_string(config.fallback.rate);
  }
  return "";
}

std::string names_of(const std::vector<control::Principal>& principals) {
  Lines names;
  for (const control::Principal& each : principals) {
    names.push_back(each.name.empty() ? std::to_string(each.id) : each.name);
  }
  return joined(names);
}

void add_control(Settings& settings, const Config& config) {
  const control::PortConfig& port = config.control;
  settings.insert(settings.end(), {{"control.name", config.name},
                                   {"control.certificate", port.certificate},
                                   {"control.key", port.key},
                                   {"control.ca", port.ca},
                                   {"control.readers", names_of(port.readers)},
                                   {"control.writers", names_of(port.writers)},
                                   {"control.audit", port.audit},
                                   {"control.coordinator", port.coordinator},
                                   {"control.fallback", fallback_of(config)},
                                   {"control.longest_delay", to_string(config.longest_delay)}});
}

Settings settings_of(const Config& config) {
  const Limits& limits = config.limits;
  const Timeouts& times = config.timeouts;
  Settings settings = {{"proxy.listen", config.listen},
                       {"proxy.upstream", config.upstream},
                       {"proxy.protocol", config.protocol},
                       {"proxy.servers", joined(config.servers)},
                       {"proxy.write_back_by_file", switched(config.write_back_by_file)},
                       {"proxy.workers", std::to_string(config.workers)},
                       {"proxy.status_file", config.status_file},
                       {"proxy.status_interval", to_string(config.status_interval)},
                       {"proxy.log", config.log},
                       {"proxy.log_level", config.log_level},
                       {"proxy.upstream_congestion", config.upstream_congestion},
                       {"limits.connections", std::to_string(limits.connections)},
                       {"limits.held_requests", std::to_string(limits.held_requests)},
                       {"limits.held_bytes", to_string(limits.held_bytes)},
                       {"limits.virtual_pfs", std::to_string(config.most_virtual_pfs)},
                       {"limits.idle", to_string(config.idle)},
                       {"limits.max_held_per_client", most_held(config.client_limits)},
                       {"timeouts.connect", to_string(times.connect)},
                       {"timeouts.hold", times.hold ? to_string(*times.hold) : "auto"},
                       {"timeouts.hold_min", to_string(times.hold_min)},
                       {"timeouts.service", to_string(times.service)},
                       {"timeouts.client_stall", to_string(times.client_stall)},
                       {"timeouts.client_min_rate", to_string(times.client_min_rate)},
                       {"timeouts.drain", to_string(times.drain)}};
  add_control(settings, config);
  add_scheduler(settings, config);
  return settings;
}

// Settings of the policy, which only the policy itself can name.
void add_policy_changes(Lines& lines, const Config& before, const Config& after) {
  if (before.policy != after.policy || before.scheduler.own == after.scheduler.own) return;
  const PolicyKind& policy = policy_of(after);
  if (policy.summary == nullptr) return;
  const std::string was = policy.summary(before.scheduler);
  const std::string is = policy.summary(after.scheduler);
  lines.push_back(was == is ? fmt::format("scheduler: settings of {} changed", policy.name)
                            : fmt::format("scheduler: \"{}\" -> \"{}\"", was, is));
}

// The words of a share, as the file has them.
Settings share_of(const stage::VirtualPfsConfig& pfs) {
  const Share& share = pfs.share;
  Settings words = {{"weight", std::to_string(share.weight)}};
  const auto add = [&](std::string_view word, bool is_set, const auto& value) {
    if (is_set) words.emplace_back(word, fmt::format("{}", value));
  };
  const bool has_finish = share.finish_bytes.count > 0;
  add("rate", share.rate.count > 0, to_string(share.rate));
  add("burst", share.rate.count > 0 || has_finish, to_string(share.burst));
  add("operations", share.operations > 0, share.operations);
  add("burst_operations", share.operations > 0, share.burst_operations);
  add("min", share.min.count > 0, to_string(share.min));
  add("realtime", share.realtime, "true");
  add("rank", share.rank.has_value(), share.rank.value_or(0));
  add("latency", share.latency > Duration::zero(), to_string(share.latency));
  add("finish.bytes", has_finish, to_string(share.finish_bytes));
  add("finish.within", has_finish, to_string(pfs.finish_within));
  for (const Share::Own& own : share.own) add(own.word, true, own.value);
  return words;
}

std::string line_of(const Settings& words) {
  Lines parts;
  for (const auto& [word, value] : words) parts.push_back(fmt::format("{} {}", word, value));
  return joined(parts);
}

// Calls the function that fits for each element that is in one list only or in both. `name_of`
// gives a name that no other element of the list has.
template <typename Item, typename NameOf>
void compare(const std::vector<Item>& before, const std::vector<Item>& after, NameOf name_of,
             const std::function<void(const Item&)>& added,
             const std::function<void(const Item&)>& removed,
             const std::function<void(const Item&, const Item&)>& kept) {
  std::map<std::string, const Item*> old;
  for (const Item& each : before) old.emplace(name_of(each), &each);
  for (const Item& each : after) {
    const auto same = old.find(name_of(each));
    if (same == old.end()) {
      added(each);
    } else {
      kept(*same->second, each);
      old.erase(same);
    }
  }
  for (const Item& each : before) {
    if (old.contains(name_of(each))) removed(each);
  }
}

void add_virtual_pfs_changes(Lines& lines, const Config& before, const Config& after) {
  using Pfs = stage::VirtualPfsConfig;
  const auto say = [&](const Pfs& pfs, std::string_view what) {
    lines.push_back(fmt::format("virtual PFS {} {}", pfs.name, what));
  };
  compare<Pfs>(
      before.virtual_pfs, after.virtual_pfs, [](const Pfs& pfs) { return pfs.name; },
      [&](const Pfs& pfs) { say(pfs, "added: " + line_of(share_of(pfs))); },
      [&](const Pfs& pfs) { say(pfs, "removed"); },
      [&](const Pfs& was, const Pfs& is) {
        if (was == is) return;
        say(is, "changed: " + joined(differences(share_of(was), share_of(is))));
      });
}

void add_job_changes(Lines& lines, const Config& before, const Config& after) {
  using Job = stage::RegisteredJob;
  if (before.only_registered_jobs != after.only_registered_jobs) {
    lines.push_back(fmt::format("jobs {} -> {}",
                                before.only_registered_jobs ? "registered" : "trust",
                                after.only_registered_jobs ? "registered" : "trust"));
  }
  const auto say = [&](const Job& job, std::string_view what) {
    lines.push_back(fmt::format("job {} {}", job.jobid, what));
  };
  compare<Job>(
      before.jobs, after.jobs, [](const Job& job) { return job.jobid; },
      [&](const Job& job) { say(job, "registered"); },
      [&](const Job& job) { say(job, "no longer registered"); },
      [&](const Job& was, const Job& is) {
        if (was != is) say(is, "changed");
      });
}

// A rule, where it stands, and what it does in words.
struct Rule {
  const stage::RuleConfig* rule;
  std::size_t index;
  std::string does;
  bool named;

  [[nodiscard]] std::string title() const {
    return named ? "rule " + rule->name : fmt::format("rules[{}]", index);
  }
};

std::vector<Rule> rules_of(const Config& config) {
  std::vector<Rule> rules;
  rules.reserve(config.rules.size());
  for (const stage::RuleConfig& each : config.rules) {
    const bool named = !each.name.empty() && !each.name.starts_with("rules[");
    rules.push_back({.rule = &each,
                     .index = rules.size(),
                     .does = describe_rule(config, each),
                     .named = named});
  }
  return rules;
}

// Whether both do the same, wherever they stand.
bool same(const Rule& before, const Rule& after) {
  const auto bare = [](const stage::RuleConfig& rule) {
    stage::RuleConfig copy = rule;
    copy.name.clear();
    copy.text = {};
    copy.origin = {};
    copy.traffic_class = 0;  // an index: its name is in `does`
    return copy;
  };
  return before.does == after.does && bare(*before.rule) == bare(*after.rule);
}

// Finds rules of `before` and of `after` that are one and the same. Each rule is taken once.
class RulePairs {
 public:
  RulePairs(const std::vector<Rule>& before, const std::vector<Rule>& after)
      : partner_(after.size()), taken_(before.size()) {
    std::multimap<std::string_view, std::size_t> by_name;
    std::multimap<std::string_view, std::size_t> by_words;
    for (const Rule& each : before) {
      each.named ? by_name.emplace(each.rule->name, each.index)
                 : by_words.emplace(each.does, each.index);
    }
    for (const Rule& each : after) {
      auto [from, to] =
          each.named ? by_name.equal_range(each.rule->name) : by_words.equal_range(each.does);
      while (from != to && taken_[from->second]) ++from;
      if (from != to) take(from->second, each.index);
    }
    // One that does something else at the same place was changed there.
    for (const Rule& each : after) {
      const std::size_t place = each.index;
      if (each.named || partner_[place] || place >= before.size()) continue;
      if (!before[place].named && !taken_[place]) take(place, place);
    }
  }

  [[nodiscard]] std::optional<std::size_t> before(std::size_t after) const {
    return partner_[after];
  }
  [[nodiscard]] bool stayed(std::size_t before) const { return taken_[before]; }
  // Whether the rules that are in both have another order now.
  [[nodiscard]] bool reordered() const {
    std::vector<std::size_t> order;
    for (const auto& each : partner_) {
      if (each) order.push_back(*each);
    }
    return !std::ranges::is_sorted(order);
  }

 private:
  void take(std::size_t before, std::size_t after) {
    partner_[after] = before;
    taken_[before] = true;
  }

  std::vector<std::optional<std::size_t>> partner_;  // of each rule in `after`
  std::vector<bool> taken_;                          // in `before`
};

void add_rule_changes(Lines& lines, const Config& old, const Config& fresh) {
  const std::vector<Rule> before = rules_of(old);
  const std::vector<Rule> after = rules_of(fresh);
  const RulePairs pairs(before, after);
  for (const Rule& each : before) {
    if (!pairs.stayed(each.index)) {
      lines.push_back(fmt::format("{} removed: {}", each.title(), each.does));
    }
  }
  for (const Rule& each : after) {
    const auto was = pairs.before(each.index);
    if (!was) {
      lines.push_back(fmt::format("{} added: {}", each.title(), each.does));
    } else if (before[*was].does != each.does) {
      lines.push_back(
          fmt::format("{} changed: {}, was: {}", each.title(), each.does, before[*was].does));
    } else if (!same(before[*was], each)) {
      lines.push_back(fmt::format("{} changed: {}", each.title(), each.does));
    }
  }
  if (!pairs.reordered()) return;
  Lines names;
  for (const Rule& each : after) names.push_back(each.named ? each.rule->name : each.does);
  lines.push_back("the order of rules changed: " + joined(names));
}

}  // namespace

std::vector<std::string> changes(const Config& before, const Config& after) {
  Lines lines = differences(settings_of(before), settings_of(after));
  add_policy_changes(lines, before, after);
  add_virtual_pfs_changes(lines, before, after);
  add_job_changes(lines, before, after);
  add_rule_changes(lines, before, after);
  return lines;
}

}  // namespace vpfs::proxy
