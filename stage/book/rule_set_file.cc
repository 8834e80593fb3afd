#include "stage/book/rule_set_file.h"

#include <algorithm>
#include <cctype>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/joined.h"
#include "stage/book/rule_book.h"
#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

// As a value of a condition: in quotes unless it needs none.
std::string condition_value(const std::string& value) {
  const bool is_plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_.-:/*?@").find(c) != std::string_view::npos;
  });
  if (is_plain) return value;
  std::string quoted = "\"";
  for (const char c : value) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

void add_term(std::string& condition, const std::string& key,
              const std::vector<std::string>& values) {
  if (!condition.empty()) condition += '&';
  condition += key + '=';
  if (values.size() == 1) {
    condition += condition_value(values.front());
    return;
  }
  condition += '{' + joined(std::views::transform(values, condition_value), " ") + '}';
}

// A mapping of conditions, as one condition.
std::string condition_of(ConfigReader match) {
  std::string condition;
  for (const std::string& key : match.keys()) {
    std::vector<std::string> values;
    if (key != "hint") {
      if (match.get(key, &values)) add_term(condition, key, values);
      continue;
    }
    ConfigReader hints = match.child("hint");
    for (const std::string& name : hints.keys()) {
      const std::string word = condition_value(name);
      if (hints.get(name, &values)) add_term(condition, "hint." + word, values);
    }
  }
  return condition;
}

// The words of a mapping, except `known` keys.
std::vector<std::string> words_of(ConfigReader& entry, const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const std::string& key : entry.keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string value;
    if (key == "finish" && !entry.is_scalar(key)) {
      ConfigReader finish = entry.child(key);
      std::string within;
      finish.require("bytes");
      finish.require("within");
      if (finish.get("bytes", &value) && finish.get("within", &within)) {
        words.push_back(fmt::format("finish={}/{}", value, within));
      }
    } else if (entry.get(key, &value)) {
      words.push_back(fmt::format("{}={}", key, value));
    }
  }
  return words;
}

// The key of the mapping that has the problem.
std::string key_of(const ConfigReader& entry, const std::string& place) {
  if (place.starts_with("COND")) return "match";
  if (place == "NAME") return "name";
  for (const std::string& key : entry.keys()) {
    if (word_key(key) == word_key(place)) return key;
  }
  return place;
}

void report(ConfigReader& entry, const std::vector<RuleProblem>& problems) {
  for (const RuleProblem& each : problems) {
    // A condition's problem has its own place within the text.
    const std::size_t byte = each.place.find(':');
    const std::string where =
        byte == std::string::npos ? "" : fmt::format("byte {}: ", each.place.substr(byte + 1));
    entry.report(key_of(entry, each.place), where + each.text);
  }
}

ApplySet::DeclaredShare share_of(const std::string& name, ConfigReader& entry, const Config& file) {
  ApplySet::DeclaredShare share;
  share.virtual_pfs = name;
  share.words = words_of(entry, {});
  share.overrides = is_of_file(file, name);
  return share;
}

RuleText rule_of(ConfigReader& entry) {
  RuleText rule;
  entry.require("name");
  entry.get("name", &rule.name);
  if (entry.is_scalar("match")) {
    entry.get("match", &rule.condition);
  } else {
    rule.condition = condition_of(entry.child("match"));
  }
  rule.words = words_of(entry, {"name", "match"});
  return rule;
}

}  // namespace

bool is_of_file(const Config& file, std::string_view virtual_pfs) {
  return virtual_pfs == "default" ||
         std::ranges::find(file.virtual_pfs, virtual_pfs, &VirtualPfsConfig::name) !=
             file.virtual_pfs.end();
}

SetContexts::SetContexts(const ApplySet& set, const Config& file, const BookState& state)
    : declaring_(file), nearby_(context_without_names(file)) {
  declaring_.rules.clear();
  declaring_.jobs.clear();
  for (const VirtualPfsConfig& each : file.virtual_pfs) declared_.insert(each.name);
  for (const ApplySet::DeclaredShare& share : set.shares) {
    if (!share.overrides) declare(share.virtual_pfs);
  }
  targets_ = declared_;
  const auto add = [&](const RuleText& rule) {
    if (!value_of(rule.words, "vpfs")) targets_.insert(rule.name);
  };
  for (const ApplySet::Rule& rule : set.rules) add(rule.text);
  for (const auto& rule : state.coordinators) add(rule->text);
}

void SetContexts::declare(const std::string& name) {
  if (!declared_.insert(name).second) return;
  declaring_.virtual_pfs.push_back({.name = name, .share = {}});
}

const Config& SetContexts::of(const RuleText& rule) {
  const std::optional<std::string_view> target = value_of(rule.words, "vpfs");
  if (!target && may_promise(rule)) return declaring_;
  const std::string name = target ? std::string(*target) : rule.name;
  nearby_.virtual_pfs.clear();
  if ((target ? targets_ : declared_).contains(name)) {
    nearby_.virtual_pfs.push_back({.name = name, .share = {}});
  }
  return nearby_;
}

ApplySet read_rule_set(std::string_view text, const Config& file, const BookState& state,
                       RuleParser parse, ConfigErrors& errors, ParsedRules* read) {
  ApplySet set;
  // Mappings without a mistake, by their places in the set. Mistakes in their words are reported
  // there, once all names are known.
  std::vector<std::pair<std::size_t, ConfigReader>> shares;
  std::vector<std::pair<std::size_t, ConfigReader>> rules;
  ConfigReader reader(text, errors);
  // A text without anything in it is more likely an accident than the wish to remove all rules.
  if (reader.flawless() && reader.keys().empty()) {
    reader.report("rules", "is missing: expected a list of rules; [] removes all");
  }
  reader.for_each_named("virtual_pfs", [&](const std::string& name, ConfigReader& entry) {
    set.shares.push_back(share_of(name, entry, file));
    if (entry.flawless()) shares.emplace_back(set.shares.size() - 1, std::move(entry));
  });
  std::size_t count = 0;
  reader.for_each("rules", [&](ConfigReader& entry) {
    if (++count > RuleBook::kMostRules) return entry.finish_unread();
    set.rules.push_back({.text = rule_of(entry)});
    if (entry.flawless()) rules.emplace_back(set.rules.size() - 1, std::move(entry));
  });
  if (count > RuleBook::kMostRules) {
    reader.report("rules",
                  fmt::format("{} rules: expected at most {}", count, RuleBook::kMostRules));
    return set;
  }
  SetContexts contexts(set, file, state);
  for (auto& [place, entry] : shares) {
    const ApplySet::DeclaredShare& share = set.shares[place];
    // A change of a share of the file needs the file's words, which prepare() has.
    if (share.overrides) continue;
    const auto made =
        changed_share({.name = share.virtual_pfs, .share = {}}, nullptr, share.words, file, parse);
    if (!made) report(entry, made.error());
  }
  for (auto& [place, entry] : rules) {
    const RuleText& rule = set.rules[place].text;
    if (read != nullptr && read->find(rule) != nullptr) continue;
    const auto parsed = parse(rule, contexts.of(rule));
    if (!parsed) {
      report(entry, parsed.error());
    } else if (read != nullptr) {
      read->add(rule, *parsed);
    }
  }
  return set;
}

}  // namespace vpfs::stage
