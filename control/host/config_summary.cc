#include "control/host/config_summary.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/joined.h"
#include "control/host/config_values.h"
#include "schedulers/policies/registry.h"
#include "stage/rules/condition.h"
#include "stage/rules/template_name.h"

namespace vpfs::control {
namespace {

std::string log(const HostConfig& config) {
  const std::string level = "log level " + config.log_level;
  return config.log == "stderr" ? level : fmt::format("log in {}, {}", config.log, level);
}

std::string depth(const stage::Config& config) {
  std::vector<std::string> parts = {
      config.scheduler.auto_depth
          ? "as many requests at the data server as keep it busy (found by itself)"
          : counted(config.scheduler.depth.requests, "request") + " at the data server at once"};
  const std::uint64_t cost = config.scheduler.depth.cost;
  if (cost < Depth().cost) parts.push_back(to_string(Bytes{cost}) + " of cost");
  return joined(parts);
}

std::string cost(const CostModel::Settings& cost) {
  const auto factor = [](std::uint32_t permille) { return permille / 1000.0; };
  return fmt::format("a request costs {} + bytes x {} (reads), x {} (writes)",
                     to_string(cost.per_request), factor(cost.read_factor_permille),
                     factor(cost.write_factor_permille));
}

std::string policy(const stage::Config& config) {
  std::string text = fmt::format("policy {}, {}", config.policy, depth(config));
  if (config.scheduler_per_target) text += ", for each storage target";
  return text + (config.schedule_metadata ? "; metadata operations wait their turn too" : "");
}

// The settings of the chosen policy.
std::string policy_settings(const stage::Config& config) {
  const PolicyKind& policy = policy_of(config);
  return policy.summary == nullptr ? "" : policy.summary(config.scheduler);
}

std::string plugins(const stage::Config& config) {
  std::vector<std::string> parts;
  for (const stage::PluginConfig& each : config.plugins) {
    const std::string by = each.maker.empty() ? "" : fmt::format(" ({})", each.maker);
    parts.push_back(fmt::format("plugin {}: {}{}", each.path, each.policies, by));
  }
  return joined(parts, "; ");
}

std::string classes(const TrafficClasses& classes) {
  if (classes.mode == TrafficClasses::Mode::none) return "";
  const bool strict = classes.mode == TrafficClasses::Mode::strict;
  std::vector<std::string> parts;
  for (const TrafficClasses::Class& each : classes.classes) {
    parts.push_back(strict ? each.name : fmt::format("{} {}", each.name, each.share));
  }
  if (!strict) return "traffic classes share the server: " + joined(parts, " : ");
  std::string text = "traffic classes, the first with something to send goes first: ";
  text += joined(parts, ", ");
  if (!classes.max_starvation) return text;
  return text + fmt::format("; none waits more than {}", to_string(*classes.max_starvation));
}

std::string limits_of(const stage::Config& config, const stage::VirtualPfsConfig& pfs) {
  const Share& share = pfs.share;
  std::vector<std::string> parts;
  bool has_weight = true;
  for (const ShareWord& word : policy_of(config).share_words) {
    std::optional<std::uint64_t> value = share.own_value(word.name);
    if (word.replaces_weight) {
      has_weight = false;
      if (!value) value = share.weight;
    }
    if (value) parts.push_back(fmt::format("{} {}", word.name, *value));
  }
  if (has_weight) parts.insert(parts.begin(), "weight " + std::to_string(share.weight));
  if (share.min.count > 0) parts.push_back("at least " + to_string(share.min));
  if (share.rate.count > 0) {
    parts.push_back(
        fmt::format("at most {} (bursts of {})", to_string(share.rate), to_string(share.burst)));
  }
  if (share.operations > 0) {
    parts.push_back(fmt::format("at most {} requests/s (bursts of {})", share.operations,
                                share.burst_operations));
  }
  if (share.realtime) parts.push_back("realtime");
  if (share.rank) parts.push_back("rank " + std::to_string(*share.rank));
  if (share.latency > Duration::zero()) parts.push_back("answers in " + to_string(share.latency));
  if (share.finish_bytes.count > 0) {
    parts.push_back(
        fmt::format("{} within {}", to_string(share.finish_bytes), to_string(pfs.finish_within)));
  }
  return joined(parts);
}

std::string jobs(const stage::Config& config) {
  if (config.only_registered_jobs) {
    return fmt::format("of jobs it counts {} that are registered, from their clients",
                       config.jobs.size());
  }
  if (config.jobs.empty()) return {};
  return fmt::format("knows {} by their clients", counted(config.jobs.size(), "registered job"));
}

// Whether the name is that of a shadow rule, which sends nothing to it.
bool is_shadow(const stage::Config& config, const std::string& name) {
  return std::ranges::any_of(config.rules, [&](const stage::RuleConfig& rule) {
    return rule.mode == stage::RuleMode::shadow && rule.virtual_pfs == name;
  });
}

std::vector<std::vector<std::string>> virtual_pfs(const stage::Config& config) {
  std::vector<std::vector<std::string>> rows;
  for (const stage::VirtualPfsConfig& each : config.virtual_pfs) {
    if (is_shadow(config, each.name)) continue;
    const bool made_by_name = !stage::template_fields(each.name).empty();
    rows.push_back({each.name, limits_of(config, each) + (made_by_name ? ", one for each" : "")});
  }
  const bool has_default =
      std::ranges::find(config.virtual_pfs, "default", &stage::VirtualPfsConfig::name) !=
      config.virtual_pfs.end();
  if (!has_default) rows.push_back({"default", limits_of(config, {})});
  return rows;
}

// A condition in words. Values are shown as they were written: a list of hosts may be long.
std::string condition(const stage::ConditionTerm& term) {
  constexpr std::string_view kHint = "hint.";
  const std::string values = joined(term.values, " or ");
  if (term.key.starts_with(kHint)) {
    return fmt::format("hint {}={}", term.key.substr(kHint.size()), values);
  }
  if (term.key != "op")
    return fmt::format("{} {}", term.key == "fs" ? "file system" : term.key, values);
  std::vector<std::string> kinds;
  for (const std::string& each : term.values) {
    kinds.push_back(each == "metadata" ? "metadata operations" : each + "s");
  }
  return joined(kinds, " or ");
}

std::string conditions(const stage::RuleConfig& rule) {
  const auto written = stage::parse_condition(rule.text.condition);
  const std::vector<std::string> fields = stage::template_fields(rule.virtual_pfs);
  std::vector<stage::ConditionTerms> any_of = written.value_or(stage::ConditionText());
  if (any_of.empty()) any_of.emplace_back();
  std::vector<std::string> alternatives;
  for (const stage::ConditionTerms& terms : any_of) {
    std::vector<std::string> parts;
    for (const stage::ConditionTerm& term : terms) parts.push_back(condition(term));
    for (const std::string& field : fields) {
      if (!stage::has_term(terms, "hint." + field) && !stage::has_term(terms, field)) {
        parts.push_back("known " + field);
      }
    }
    alternatives.push_back(parts.empty() ? "everything" : joined(parts, " and "));
  }
  return joined(alternatives, ", or ");
}

// What becomes of the requests that match.
std::string outcome(const stage::RuleConfig& rule) {
  if (rule.mode == stage::RuleMode::shadow) {
    std::vector<std::string> limits = rule.text.words;
    std::erase_if(limits, [](const std::string& word) {
      return word.starts_with("mode=") || word.starts_with("class=");
    });
    return fmt::format("counts what {} would hold", fmt::join(limits, " "));
  }
  return "-> " + rule.virtual_pfs + (rule.exempt ? ", never held" : "");
}

std::string in_class(const stage::Config& config, std::size_t index) {
  const std::vector<TrafficClasses::Class>& names = config.scheduler.classes.classes;
  return names.empty() ? "" : fmt::format(" (class {})", names[index].name);
}

// Where the requests of a rule go.
std::string goes_to(const stage::Config& config, const stage::RuleConfig& rule) {
  return outcome(rule) + in_class(config, rule.traffic_class);
}

std::vector<std::vector<std::string>> rules(const stage::Config& config) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(config.rules.size() + 1);
  for (const stage::RuleConfig& each : config.rules) {
    rows.push_back({conditions(each), goes_to(config, each)});
  }
  const bool all_matched = !rows.empty() && rows.back().front() == "everything";
  if (!all_matched) {
    rows.push_back({rows.empty() ? "everything" : "what no rule matches",
                    "-> default" + in_class(config, default_class(config))});
  }
  return rows;
}

// Appends a table of two columns under a title.
void add_table(std::string& text, std::string_view title,
               const std::vector<std::vector<std::string>>& rows) {
  std::size_t width = 0;
  for (const std::vector<std::string>& row : rows) width = std::max(width, row[0].size());
  text += fmt::format("  {}\n", title);
  for (const std::vector<std::string>& row : rows) {
    fmt::format_to(std::back_inserter(text), "    {:<{}}  {}\n", row[0],
                   std::min<std::size_t>(width, 48), row[1]);
  }
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view what) {
  const std::string_view ending = what.ends_with('s') || what.ends_with('S') ? "es" : "s";
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!line.empty()) text += "  " + line + "\n";
  }
  return text;
}

std::string process_summary(const HostConfig& config) {
  const std::string status = config.status_file.empty()
                                 ? "no status file"
                                 : fmt::format("status in {} every {}", config.status_file,
                                               to_string(config.status_interval));
  return status + ", " + log(config);
}

std::string ports_summary(const HostConfig& config) {
  std::vector<std::string> parts;
  if (!config.control.socket.empty()) parts.push_back("control port " + config.control.socket);
  if (!config.control.tcp.empty()) {
    parts.push_back(fmt::format("control port {} with TLS", config.control.tcp));
  }
  if (config.control.dials()) {
    parts.push_back("coordinator " + joined(config.control.coordinators));
  }
  if (config.http.enabled()) parts.push_back(fmt::format("metrics at {}", config.http.address));
  if (config.http.has_tls()) {
    parts.push_back(fmt::format("metrics at {} with TLS", config.http.tls_address));
  }
  if (!config.journal.empty()) parts.push_back("live rules kept in " + config.journal);
  if (!config.history.empty()) parts.push_back("history kept in " + config.history);
  if (!config.ledger.empty()) parts.push_back("ledger kept in " + config.ledger);
  return joined(parts, ", ");
}

std::string stage_summary(const stage::Config& config) {
  std::string text = indented({plugins(config), policy(config), policy_settings(config),
                               cost(config.cost), classes(config.scheduler.classes), jobs(config)});
  add_table(text, "virtual PFSes:", virtual_pfs(config));
  add_table(text, "rules, of which the first that matches decides:", rules(config));
  return text;
}

std::vector<std::string> stage_lines(const stage::Config& config) {
  std::vector<std::string> lines;
  if (std::string loaded = plugins(config); !loaded.empty()) lines.push_back(std::move(loaded));
  lines.push_back(policy(config));
  // The status counts the default among the rules.
  lines.push_back(fmt::format("{} and the default, {}", counted(config.rules.size(), "rule"),
                              counted(config.virtual_pfs.size(), "declared virtual PFS")));
  return lines;
}

std::string describe_rule(const stage::Config& config, const stage::RuleConfig& rule) {
  return conditions(rule) + " " + goes_to(config, rule);
}

}  // namespace vpfs::control
