#include "stage/rule_config.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "stage/address.h"
#include "stage/config_words.h"
#include "stage/template_name.h"

namespace vpfs::stage {
namespace {

void read_numbers(ConfigReader& match, std::string_view key, std::uint64_t most,
                  std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> texts;
  if (!match.get(key, &texts)) return;
  for (const std::string& text : texts) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > most) {
      match.report(key, fmt::format("'{}' is not a number from 0 to {}", text, most));
    } else {
      numbers.push_back(number);
    }
  }
}

// Reports a condition that never holds because no request shows the attribute.
bool shown(ConfigReader& match, std::string_view key, const Config& config, Attribute attribute) {
  if (!match.has(key)) return false;
  if (config.shown.has(attribute)) return true;
  match.report(key, fmt::format("{} does not show it", config.source));
  return false;
}

void read_operation(ConfigReader& match, std::string_view key, const Config& config,
                    RuleConfig& rule) {
  std::string operation;
  if (!match.choose(key, &operation, {"read", "write", "metadata"})) return;
  rule.kind = operation == "read"    ? IoKind::read
              : operation == "write" ? IoKind::write
                                     : IoKind::metadata;
  if (rule.kind == IoKind::metadata) (void)shown(match, key, config, Attribute::metadata);
}

void read_hints(ConfigReader& match, const Config& config, RuleConfig& rule) {
  if (!shown(match, "hint", config, Attribute::hint) || !match.get("hint", &rule.hints)) return;
  for (const auto& [name, pattern] : rule.hints) {
    if (!pattern.empty()) continue;
    match.report("hint", fmt::format("the pattern of '{}' is empty; '*' matches any value", name));
  }
}

void read_match(ConfigReader match, const Config& config, RuleConfig& rule) {
  if (match.get("client", &rule.clients)) {
    for (const std::string& client : rule.clients) {
      if (!AddressBlock::parse(client)) {
        match.report("client", fmt::format("'{}' is no IP address or CIDR block", client));
      }
    }
  }
  read_hints(match, config, rule);
  read_operation(match, match.has("op") ? "op" : "operation", config, rule);
  const auto numbers = [&](std::string_view key, Attribute attribute, std::uint64_t most,
                           std::vector<std::uint64_t>& wanted) {
    if (shown(match, key, config, attribute)) read_numbers(match, key, most, wanted);
  };
  numbers("file_system", Attribute::file_system, INT32_MAX, rule.file_systems);
  numbers("uid", Attribute::uid, UINT32_MAX, rule.uids);
  numbers("node", Attribute::node, UINT32_MAX, rule.nodes);
  numbers("target", Attribute::target, UINT16_MAX, rule.targets);
  numbers("owner", Attribute::owner, UINT32_MAX, rule.owners);
  if (shown(match, "dir", config, Attribute::directory) && match.get("dir", &rule.directories) &&
      std::ranges::find(rule.directories, "") != rule.directories.end()) {
    match.report("dir", "an empty pattern matches nothing");
  }
  suggest_match_words(match);
}

// The virtual PFS of a rule must be declared. The fields of a template must be attributes that
// requests show or hints that the rule itself demands, so that they are always known.
void check_target(ConfigReader& entry, const Config& config, const RuleConfig& rule) {
  const auto declared = [&](const VirtualPfsConfig& each) { return each.name == rule.virtual_pfs; };
  if (rule.virtual_pfs != "default" && std::ranges::none_of(config.virtual_pfs, declared)) {
    entry.report("virtual_pfs",
                 fmt::format("'{}' is not declared under virtual_pfs", rule.virtual_pfs));
  }
  if (const auto problem = template_problem(rule.virtual_pfs)) {
    entry.report("virtual_pfs", *problem);
    return;
  }
  for (const std::string& field : template_fields(rule.virtual_pfs)) {
    const auto demanded = [&](const auto& hint) { return hint.first == field; };
    const std::optional<Attribute> attribute = template_attribute(field);
    if (attribute && config.shown.has(*attribute)) continue;
    if (std::ranges::none_of(rule.hints, demanded)) {
      entry.report("virtual_pfs",
                   fmt::format("the template uses {{{}}}, but the rule matches no hint "
                               "'{}'",
                               field, field));
    }
  }
}

void read_class(ConfigReader& entry, const Config& config, RuleConfig& rule) {
  rule.traffic_class = default_class(config);
  std::vector<std::string> names;
  for (const TrafficClasses::Class& each : config.scheduler.classes.classes) {
    names.push_back(each.name);
  }
  std::string name;
  if (names.empty() && entry.has("class")) {
    entry.report("class", "no classes are named under scheduler.classes");
  } else if (entry.choose("class", &name, names)) {
    rule.traffic_class = static_cast<std::uint8_t>(std::ranges::find(names, name) - names.begin());
  }
}

}  // namespace

void read_rules(ConfigReader& reader, Config& config) {
  reader.for_each("rules", [&](ConfigReader& entry) {
    RuleConfig rule;
    read_match(entry.child("match"), config, rule);
    read_class(entry, config, rule);
    entry.require("virtual_pfs");
    if (entry.get("virtual_pfs", &rule.virtual_pfs)) check_target(entry, config, rule);
    suggest_rule_words(entry);
    config.rules.push_back(std::move(rule));
  });
}

}  // namespace vpfs::stage
