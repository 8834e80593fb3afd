#include "control/host/config_changes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/joined.h"
#include "control/host/config_summary.h"
#include "control/host/config_values.h"
#include "schedulers/policies/registry.h"

namespace vpfs::control {
namespace {

using Lines = std::vector<std::string>;

// Settings of the policy, which only the policy itself can name.
void add_policy_changes(Lines& lines, const stage::Config& before, const stage::Config& after) {
  if (before.policy != after.policy || before.scheduler.own == after.scheduler.own) return;
  const PolicyKind& policy = policy_of(after);
  if (policy.summary == nullptr) return;
  const std::string was = policy.summary(before.scheduler);
  const std::string is = policy.summary(after.scheduler);
  if (was == is) {
    lines.push_back(fmt::format("scheduler: settings of {} changed", policy.name));
  } else if (was.empty() || is.empty()) {
    lines.push_back(
        fmt::format("scheduler: {} \"{}\"", is.empty() ? "no longer" : "now", was + is));
  } else {
    lines.push_back(fmt::format("scheduler: \"{}\" -> \"{}\"", was, is));
  }
}

// The words of a share, as the file has them.
ConfigValues share_of(const stage::VirtualPfsConfig& pfs) {
  const Share& share = pfs.share;
  ConfigValues words = {{"weight", std::to_string(share.weight)}};
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

std::string line_of(const ConfigValues& words) {
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

void add_virtual_pfs_changes(Lines& lines, const stage::Config& before,
                             const stage::Config& after) {
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

void add_job_changes(Lines& lines, const stage::Config& before, const stage::Config& after) {
  using Job = stage::RegisteredJob;
  if (before.only_registered_jobs != after.only_registered_jobs) {
    lines.push_back(fmt::format("jobs {} -> {}",
                                before.only_registered_jobs ? "registered" : "trust",
                                after.only_registered_jobs ? "registered" : "trust"));
  }
  if (before.node_addresses != after.node_addresses) {
    lines.push_back(
        fmt::format("the addresses of this node changed; it has {}", after.node_addresses.size()));
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

// A rule, its position, and what it does in words.
struct ListedRule {
  const stage::RuleConfig* rule;
  std::size_t index;
  std::string does;
  bool named;

  [[nodiscard]] std::string title() const {
    return named ? "rule " + rule->name : fmt::format("rules[{}]", index);
  }
};

std::vector<ListedRule> rules_of(const stage::Config& config) {
  std::vector<ListedRule> rules;
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

// Whether both do the same, whatever their positions.
bool same(const ListedRule& before, const ListedRule& after) {
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
  RulePairs(const std::vector<ListedRule>& before, const std::vector<ListedRule>& after)
      : partner_(after.size()), taken_(before.size()) {
    std::multimap<std::string_view, std::size_t> by_name;
    std::multimap<std::string_view, std::size_t> by_words;
    for (const ListedRule& each : before) {
      each.named ? by_name.emplace(each.rule->name, each.index)
                 : by_words.emplace(each.does, each.index);
    }
    for (const ListedRule& each : after) {
      auto [from, to] =
          each.named ? by_name.equal_range(each.rule->name) : by_words.equal_range(each.does);
      while (from != to && taken_[from->second]) ++from;
      if (from != to) take(from->second, each.index);
    }
    // One that does something else at the same place was changed there.
    for (const ListedRule& each : after) {
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

void add_rule_changes(Lines& lines, const stage::Config& old, const stage::Config& fresh) {
  const std::vector<ListedRule> before = rules_of(old);
  const std::vector<ListedRule> after = rules_of(fresh);
  const RulePairs pairs(before, after);
  for (const ListedRule& each : before) {
    if (!pairs.stayed(each.index)) {
      lines.push_back(fmt::format("{} removed: {}", each.title(), each.does));
    }
  }
  for (const ListedRule& each : after) {
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
  for (const ListedRule& each : after) names.push_back(each.named ? each.rule->name : each.does);
  lines.push_back("the order of rules changed: " + joined(names));
}

}  // namespace

std::vector<std::string> stage_changes(const stage::Config& before, const stage::Config& after) {
  Lines lines;
  add_policy_changes(lines, before, after);
  add_virtual_pfs_changes(lines, before, after);
  add_job_changes(lines, before, after);
  add_rule_changes(lines, before, after);
  return lines;
}

}  // namespace vpfs::control
