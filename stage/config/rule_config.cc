#include "stage/config/rule_config.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stage/config/condition_values.h"
#include "stage/config/config_words.h"
#include "stage/config/parsed_rules.h"
#include "stage/config/rule_words.h"
#include "stage/rules/condition.h"
#include "stage/rules/match_words.h"

namespace vpfs::stage {
namespace {

// A mapping of conditions as a line of terms, whose problems are reported at its keys.
class MatchReader {
 public:
  MatchReader(ConfigReader match, const Config& config)
      : match_(std::move(match)), config_(config) {}

  // The terms, in a fixed order.
  ConditionTerms run(Conditions& conditions) {
    add("client", "client");
    add_hints();
    add(match_.has("op") ? "op" : "operation", "op");
    add(match_.has("fs") ? "fs" : "file_system", "fs");
    for (const std::string_view key :
         {"uid", "node", "target", "owner", "dir", "jobid", "gid", "account"}) {
      add(key, key);
    }
    suggest_match_words(match_);
    const auto report = [this](const ConditionTerm& term, std::optional<std::size_t> /*value*/,
                               const std::string& problem) {
      const std::string_view key = term.key.starts_with("hint.") ? "hint"
                                   : term.key == "op" ? match_.has("op") ? "op" : "operation"
                                   : term.key == "fs" ? match_.has("fs") ? "fs" : "file_system"
                                                      : std::string_view(term.key);
      match_.report(key, problem);
    };
    conditions = read_conditions(terms_, config_, report);
    return terms_;
  }

 private:
  void add(std::string_view key, std::string_view word) {
    ConditionTerm term = {.key = std::string(word), .values = {}};
    if (!match_.get(key, &term.values)) return;
    for (std::string& value : term.values) value = canonical_value(word, value);
    terms_.push_back(std::move(term));
  }

  void add_hints() {
    if (!match_.has("hint")) return;
    if (!may_be_known(config_, Attribute::hint)) {
      return match_.report("hint", fmt::format("{} does not show it", config_.source));
    }
    ConfigReader hints = match_.child("hint");
    for (const std::string& name : hints.keys()) {
      ConditionTerm term = {.key = "hint." + name, .values = {}};
      if (hints.get(name, &term.values)) terms_.push_back(std::move(term));
    }
    if (hints.keys().empty() && hints.flawless()) {
      match_.report("hint", "is empty: give it a value, or leave it out");
    }
  }

  ConfigReader match_;
  const Config& config_;
  ConditionTerms terms_;
};

// `match: "jobid={a b}&op=read"`
ConditionText read_text(ConfigReader& entry, const Config& config, RuleConfig& rule) {
  std::string text;
  if (!entry.get("match", &text)) return {};
  const auto condition = parse_condition(text);
  if (!condition) {
    entry.report("match", fmt::format("byte {}: {}", condition.error().at, condition.error().text));
    return {};
  }
  for (const ConditionTerms& terms : *condition) {
    rule.any_of.push_back(read_conditions(
        terms, config,
        [&](const ConditionTerm& term, std::optional<std::size_t> value,
            const std::string& problem) {
          entry.report("match",
                       fmt::format("byte {}: {}: {}", value ? term.value_at[*value] : term.key_at,
                                   term.key, problem));
        }));
  }
  return *condition;
}

ConditionText read_match(ConfigReader& entry, const Config& config, RuleConfig& rule) {
  if (entry.is_scalar("match")) return read_text(entry, config, rule);
  Conditions conditions;
  ConditionTerms terms = MatchReader(entry.child("match"), config).run(conditions);
  if (terms.empty()) return {};
  rule.any_of = {std::move(conditions)};
  return {std::move(terms)};
}

// What a rule's words are read against: without the virtual PFSes that it does not name, so that
// reading a rule does not depend on how many there are before it.
class WordContext {
 public:
  explicit WordContext(const Config& config)
      : config_(config), nearby_(context_without_names(config)) {
    for (const VirtualPfsConfig& each : config.virtual_pfs) declared_.insert(each.name);
  }

  void declare(const std::string& name) { declared_.insert(name); }
  // Valid until the next call.
  const Config& of(ConfigReader& entry, const std::string& name) {
    const std::vector<std::string> keys = entry.keys();
    const auto has = [&](std::string_view key) {
      return std::ranges::find(keys, key) != keys.end();
    };
    if (has("latency") || has("finish")) return config_;
    nearby_.virtual_pfs.clear();
    std::string named = name;
    for (const std::string_view key : {"vpfs", "virtual_pfs"}) {
      if (has(key) && entry.is_scalar(key)) entry.get(key, &named);
    }
    if (declared_.contains(named)) nearby_.virtual_pfs.push_back({.name = named, .share = {}});
    return nearby_;
  }

 private:
  const Config& config_;
  Config nearby_;
  std::unordered_set<std::string> declared_;
};

}  // namespace

void read_rules(ConfigReader& reader, Config& config) {
  std::map<std::string, int> names;  // and their lines
  WordContext context(config);
  std::size_t number = 0;
  reader.for_each("rules", [&](ConfigReader& entry) {
    RuleConfig rule = {.name = fmt::format("rules[{}]", number++), .virtual_pfs = {}};
    const bool is_named = entry.get("name", &rule.name);
    if (is_named) {
      if (const auto problem = rule_name_problem(rule.name)) entry.report("name", *problem);
    }
    const auto [known, is_new] = names.emplace(rule.name, entry.line());
    if (!is_new) {
      entry.report("name", fmt::format("another rule is named '{}' {}", rule.name,
                                       entry.place(known->second)));
    }
    rule.text.condition = to_string(read_match(entry, config, rule));
    rule.text.name = rule.name;
    auto declares = read_rule_words(entry, context.of(entry, rule.name), is_named, rule);
    if (entry.has("for")) entry.report("for", "a rule of the file stays until the file changes");
    suggest_rule_words(entry, config);
    if (declares) {
      context.declare(declares->name);
      config.virtual_pfs.push_back(std::move(*declares));
    }
    config.rules.push_back(std::move(rule));
  });
}

}  // namespace vpfs::stage
