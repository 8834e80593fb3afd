#include "stage/config/rule_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stage/config/condition_values.h"
#include "stage/config/config_words.h"
#include "stage/config/share_config.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

constexpr std::array kRuleWords = {
    RuleWord{"weight", "4"},
    RuleWord{"rate", "500MiB/s"},
    RuleWord{"iops", "2k", "operations"},
    RuleWord{"total_rate", "10GiB/s"},
    RuleWord{"total_operations", "20k", "total_iops"},
    RuleWord{"min", "100MiB/s"},
    RuleWord{"burst", "2GiB"},
    RuleWord{"burst_iops", "100", "burst_operations"},
    RuleWord{"latency", "20ms"},
    RuleWord{"finish", "2TiB/8h"},
    RuleWord{"rank", "3"},
    RuleWord{"realtime", ""},
    RuleWord{"vpfs", "NAME", "virtual_pfs"},
    RuleWord{"class", "interactive"},
    RuleWord{"mode", "shadow"},
    RuleWord{"exempt", ""},
    RuleWord{"for", "2h"},
};

bool is_text(std::string_view key) {
  return key == "vpfs" || key == "class" || key == "mode";
}

// A quantity without its blanks, and with its unit.
std::string canonical(std::string_view key, std::string text) {
  if (is_text(key)) return text;
  std::erase_if(text, [](char byte) { return byte == ' ' || byte == '\t'; });
  const bool is_size = key == "burst";
  if (is_size && text.find_first_not_of("0123456789.") == std::string::npos) text += 'B';
  return text;
}

bool is_declared(const Config& context, const std::string& name) {
  return name == "default" ||
         std::ranges::find(context.virtual_pfs, name, &VirtualPfsConfig::name) !=
             context.virtual_pfs.end();
}

// The fields of a template must be attributes that requests show, or that registrations of jobs
// tell, or hints that the rule itself demands, so that they are always known.
std::optional<std::string> fields_problem(const Config& context, const RuleConfig& rule) {
  if (auto problem = template_problem(rule.virtual_pfs)) return problem;
  for (const std::string& field : template_fields(rule.virtual_pfs)) {
    const std::optional<Attribute> attribute = template_attribute(field);
    if (attribute && may_be_known(context, *attribute)) continue;
    const auto demands = [&](const Conditions& conditions) {
      return std::ranges::any_of(conditions.hints,
                                 [&](const auto& hint) { return hint.first == field; });
    };
    if (rule.any_of.empty() || !std::ranges::all_of(rule.any_of, demands)) {
      return fmt::format("the template uses {{{0}}}, but the rule matches no hint '{0}'", field);
    }
  }
  return std::nullopt;
}

void read_class(ConfigReader& entry, const Config& context, RuleConfig& rule) {
  rule.traffic_class = default_class(context);
  if (context.is_site) {  // stages have the classes
    std::string unused;
    entry.get("class", &unused);
    return;
  }
  std::vector<std::string> names;
  names.reserve(context.scheduler.classes.classes.size());
  for (const TrafficClasses::Class& each : context.scheduler.classes.classes) {
    names.push_back(each.name);
  }
  std::string name;
  if (names.empty() && entry.has("class")) {
    entry.report("class", "no classes are named under scheduler.classes");
  } else if (entry.choose("class", &name, names)) {
    rule.traffic_class = static_cast<std::uint8_t>(std::ranges::find(names, name) - names.begin());
  }
}

void read_mode(ConfigReader& entry, RuleConfig& rule) {
  std::string mode = "enforce";
  entry.choose("mode", &mode, {"enforce", "shadow"});
  rule.mode = mode == "shadow" ? RuleMode::shadow : RuleMode::enforce;
  entry.get("exempt", &rule.exempt);
  if (rule.exempt && rule.mode == RuleMode::shadow) {
    entry.report("exempt", "a shadow rule holds nothing anyway");
  }
}

// A rule that sends to a virtual PFS that is declared elsewhere.
void read_target(ConfigReader& entry, std::string_view key, const Config& context,
                 RuleConfig& rule) {
  if (!entry.get(key, &rule.virtual_pfs)) return;
  if (rule.mode == RuleMode::shadow) {
    return entry.report(key, "a shadow rule needs limits of its own, such as rate=500MiB/s");
  }
  if (!context.is_site && !is_declared(context, rule.virtual_pfs)) {
    entry.report(key, fmt::format("'{}' is not declared under virtual_pfs", rule.virtual_pfs));
  }
  if (const auto problem = fields_problem(context, rule)) entry.report(key, *problem);
  for (const std::string_view word : share_words(context)) {
    if (!entry.has(word)) continue;
    entry.report(word, fmt::format("belongs to the virtual PFS: expected it as virtual_pfs.{}.{}, "
                                   "or a rule that names no virtual PFS",
                                   rule.virtual_pfs, word));
  }
}

std::optional<VirtualPfsConfig> read_own(ConfigReader& entry, const Config& context,
                                         RuleConfig& rule) {
  rule.virtual_pfs = rule.name;
  if (is_declared(context, rule.name)) {
    entry.report("name", fmt::format("the virtual PFS '{0}' is declared already; vpfs={0} sends to "
                                     "it, and another name makes another one",
                                     rule.name));
  }
  if (const auto problem = fields_problem(context, rule)) entry.report("name", *problem);
  if (rule.mode == RuleMode::shadow) return read_shadow_share(rule.name, entry, context);
  if (rule.exempt) {
    for (const std::string_view word : share_words(context)) {
      if (entry.has(word)) entry.report(word, "requests of an exempt rule never wait");
    }
    return VirtualPfsConfig{.name = rule.name, .share = {}};
  }
  VirtualPfsConfig made = read_share(rule.name, entry, context);
  check_promise(entry, made, context);
  return made;
}

}  // namespace

std::span<const RuleWord> rule_words() {
  return kRuleWords;
}

const RuleWord* find_rule_word(std::string_view key) {
  for (const RuleWord& each : rule_words()) {
    if (each.key == key || (!each.other.empty() && each.other == key)) return &each;
  }
  return nullptr;
}

std::vector<std::string> canonical_words(ConfigReader& entry, const Config& context) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view key, std::string_view as) {
    std::string text;
    if (!entry.is_scalar(key) || !entry.get(key, &text)) return false;
    words.push_back(fmt::format("{}={}", as, canonical(as, text)));
    return true;
  };
  for (const RuleWord& word : kRuleWords) {
    if (word.key == "finish" && entry.has("finish") && !entry.is_scalar("finish")) {
      ConfigReader finish = entry.child("finish");
      std::string bytes;
      std::string within;
      if (!finish.is_scalar("bytes") || !finish.get("bytes", &bytes)) continue;
      if (!finish.is_scalar("within") || !finish.get("within", &within)) continue;
      words.push_back(
          fmt::format("finish={}/{}", canonical("burst", bytes), canonical("finish", within)));
    } else if (word.is_flag()) {
      if (entry.is(word.key, "true")) words.emplace_back(word.key);
    } else if (word.key == "mode" && entry.is("mode", "enforce")) {
      continue;  // the default
    } else if (!add(word.key, word.key) && !word.other.empty()) {
      (void)add(word.other, word.key);
    }
  }
  for (const ShareWord& word : own_words(context)) (void)add(word.name, word.name);
  return words;
}

std::optional<std::string> rule_name_problem(const std::string& name) {
  if (!is_good_name(name)) {
    return fmt::format("must be 1 to {} bytes of printable ASCII", kLongestName);
  }
  if (name == "default") {
    return "default is last and takes what no rule matches; it cannot be a rule";
  }
  return std::nullopt;
}

std::optional<VirtualPfsConfig> read_rule_words(ConfigReader& entry, const Config& context,
                                                bool is_named, RuleConfig& rule) {
  read_mode(entry, rule);
  read_class(entry, context, rule);
  const bool has_both = entry.has("virtual_pfs") && entry.has("vpfs");
  if (has_both) entry.report("vpfs", "is another word for `virtual_pfs`, which is given too");
  const std::string_view target = entry.has("virtual_pfs") ? "virtual_pfs" : "vpfs";
  rule.text.words = canonical_words(entry, context);
  if (entry.has(target)) {
    read_target(entry, target, context, rule);
    return std::nullopt;
  }
  if (is_named) return read_own(entry, context, rule);
  const auto is_there = [&](std::string_view word) { return entry.has(word); };
  if (std::ranges::any_of(share_words(context), is_there)) {
    entry.report("name", "is missing: a rule with a share of its own needs one");
  } else {
    entry.require("virtual_pfs");
  }
  return std::nullopt;
}

}  // namespace vpfs::stage
