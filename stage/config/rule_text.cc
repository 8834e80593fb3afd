#include "stage/config/rule_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stage/config/condition_values.h"
#include "stage/config/config_words.h"
#include "stage/config/rule_words.h"
#include "stage/config/share_config.h"
#include "stage/rules/condition.h"

namespace vpfs::stage {
namespace {

using Problems = std::vector<RuleProblem>;

struct Word {
  std::string key;
  std::optional<std::string> value;  // nothing: a flag
};
Word split(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {.key = text, .value = std::nullopt};
  return {.key = text.substr(0, equals), .value = text.substr(equals + 1)};
}

// The same for both keys of one word.
std::string_view meaning(std::string_view key) {
  const RuleWord* const known = find_rule_word(key);
  return known == nullptr ? key : known->key;
}

// A YAML scalar in double quotes.
std::string scalar(std::string_view text) {
  std::string quoted = "\"";
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      quoted += '\\';
      quoted += byte;
    } else if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\x{:02x}", code);
    } else {
      quoted += byte;
    }
  }
  return quoted + '"';
}

std::vector<Conditions> read_condition(RuleText& text, const Config& context, Problems& problems) {
  const auto condition = parse_condition(text.condition);
  if (!condition) {
    problems.push_back(
        {.place = fmt::format("COND:{}", condition.error().at), .text = condition.error().text});
    return {};
  }
  std::vector<Conditions> any_of;
  for (const ConditionTerms& terms : *condition) {
    any_of.push_back(
        read_conditions(terms, context,
                        [&](const ConditionTerm& term, std::optional<std::size_t> value,
                            const std::string& problem) {
                          const std::size_t at = value ? term.value_at[*value] : term.key_at;
                          problems.push_back({.place = fmt::format("COND:{}", at),
                                              .text = fmt::format("{}: {}", term.key, problem)});
                        }));
  }
  text.condition = to_string(*condition);
  return any_of;
}

// Whether the word may go into the mapping that the file's code reads.
bool check_word(const Word& word, bool is_default, Problems& problems) {
  const auto refuse = [&](std::string problem) {
    problems.push_back({.place = word.key, .text = std::move(problem)});
    return false;
  };
  constexpr std::size_t kLongestKey = 64;
  if (word.key.empty() || word.key.size() > kLongestKey) {
    problems.push_back({.place = word.key.substr(0, kLongestKey),
                        .text = "is not a word of a rule: expected one such as weight=4"});
    return false;
  }
  if (is_condition_word(word.key)) {
    return refuse(
        fmt::format("is a condition: expected it in COND, such as jobid=a&{}=...", word.key));
  }
  const RuleWord* const known = find_rule_word(word.key);
  if (is_default) {
    for (const std::string_view each : {"vpfs", "class", "mode", "exempt"}) {
      if (meaning(word.key) == each) return refuse("default has a share and nothing else");
    }
  }
  if (known != nullptr && known->is_flag() && !word.value) return true;
  if (!word.value || word.value->empty()) {
    return refuse(fmt::format("needs a value, such as {}={}", word.key,
                              known == nullptr || known->is_flag() ? "4" : known->example));
  }
  const bool has_unit = word.value->find_first_not_of("0123456789. ") != std::string::npos;
  if (meaning(word.key) == "burst" && !has_unit) {
    return refuse(fmt::format("\"{0}\" needs a unit, such as \"{0} MiB\"", *word.value));
  }
  return true;
}

// The words as a mapping, one on each line.
std::string mapping_of(const std::vector<std::string>& words, bool is_default, Problems& problems) {
  std::string yaml = "{\n";
  std::vector<std::string> seen;
  for (const std::string& each : words) {
    const Word word = split(each);
    if (std::ranges::find(seen, meaning(word.key)) != seen.end()) {
      problems.push_back({.place = word.key, .text = "is given twice"});
      continue;
    }
    seen.emplace_back(meaning(word.key));
    if (!check_word(word, is_default, problems)) continue;
    yaml += fmt::format("{}: {},\n", scalar(word.key), scalar(word.value.value_or("true")));
  }
  return yaml + "}\n";
}

void read_default(ConfigReader& entry, const Config& context, ParsedRule& parsed) {
  parsed.rule.virtual_pfs = "default";
  parsed.rule.traffic_class = default_class(context);
  parsed.declares = read_share("default", entry, context);
  check_promise(entry, *parsed.declares, context);
  parsed.rule.text.words = canonical_words(entry, context);
}

// "name" is not one of the words.
std::string place_of(const std::string& key) {
  return key == "name" ? "NAME" : key;
}

}  // namespace

std::expected<ParsedRule, std::vector<RuleProblem>> parse_rule(const RuleText& text,
                                                               const Config& context) {
  Problems problems;
  ParsedRule parsed;
  const bool is_default = text.name == "default";
  parsed.rule.name = text.name;
  parsed.rule.origin = RuleOrigin::administrator;
  parsed.rule.text = text;
  if (is_default) {
    if (!text.condition.empty()) {
      problems.push_back({.place = "NAME", .text = rule_name_problem(text.name).value_or("")});
    }
  } else if (const auto problem = rule_name_problem(text.name)) {
    problems.push_back({.place = "NAME", .text = *problem});
  }
  parsed.rule.any_of = read_condition(parsed.rule.text, context, problems);

  ConfigErrors errors("");
  {
    ConfigReader entry(mapping_of(text.words, is_default, problems), errors);
    if (is_default) {
      read_default(entry, context, parsed);
    } else {
      parsed.declares = read_rule_words(entry, context, true, parsed.rule);
    }
    Duration lasts = {};
    if (entry.get("for", &lasts, std::chrono::seconds(1), std::chrono::hours(24 * 365))) {
      parsed.lasts = lasts;
    }
    suggest_text_words(entry, context);
  }
  for (const ConfigProblem& each : errors.problems()) {
    problems.push_back({.place = place_of(each.key), .text = each.text});
  }
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return parsed;
}

}  // namespace vpfs::stage
