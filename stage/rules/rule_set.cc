#include "stage/rules/rule_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<Pattern> patterns_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// The request's value; "" if it is not known.
std::string value_of(const Sight& sight, Attribute attribute) {
  if (const auto text = sight.text(attribute)) return std::string(*text);
  const std::optional<std::uint64_t> number = sight.number(attribute);
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

RuleSet::RuleSet(const std::vector<RuleConfig>& rules) : index_(read(rules), hint_names_.size()) {}

std::vector<Rule> RuleSet::read(const std::vector<RuleConfig>& rules) {
  std::vector<Rule> made;
  made.reserve(rules.size());
  targets_.reserve(rules.size());
  for (const RuleConfig& each : rules) {
    if (each.any_of.empty()) {
      made.push_back(read(each, {}));
    } else {
      for (const Conditions& conditions : each.any_of) made.push_back(read(each, conditions));
    }
    targets_.push_back({.virtual_pfs = each.virtual_pfs,
                        .traffic_class = each.traffic_class,
                        .is_template = !template_fields(each.virtual_pfs).empty(),
                        .exempt = each.exempt});
  }
  return made;
}

Rule RuleSet::read(const RuleConfig& from, const Conditions& conditions) {
  Rule rule;
  rule.number = static_cast<std::uint32_t>(targets_.size());
  rule.is_shadow = from.mode == RuleMode::shadow;
  rule.clients.reserve(conditions.clients.size());
  for (const std::string& client : conditions.clients) {
    if (const auto block = AddressBlock::parse(client)) rule.clients.push_back(*block);
  }
  for (const auto& [name, patterns] : conditions.hints) {
    rule.hints.push_back({.index = index_of_hint(name), .patterns = patterns_of(patterns)});
  }
  rule.kinds = conditions.kinds;
  rule.file_systems = sorted(conditions.file_systems);
  rule.uids = sorted(conditions.uids);
  rule.nodes = sorted(conditions.nodes);
  rule.targets = sorted(conditions.targets);
  rule.owners = sorted(conditions.owners);
  rule.gids = sorted(conditions.gids);
  rule.directories = patterns_of(conditions.directories);
  rule.jobids = patterns_of(conditions.jobids);
  rule.accounts = patterns_of(conditions.accounts);
  for (const std::string& field : template_fields(from.virtual_pfs)) {
    const std::optional<Attribute> attribute = template_attribute(field);
    if (attribute && !demands_hint(rule, field)) rule.needed.push_back(*attribute);
  }
  note_attributes(rule);
  return rule;
}

void RuleSet::note_attributes(const Rule& rule) {
  const auto note = [&](Attribute attribute, bool is_demanded) {
    const bool is_needed = std::ranges::find(rule.needed, attribute) != rule.needed.end();
    if (is_demanded || is_needed) looked_at_.add(attribute);
  };
  note(Attribute::file_system, !rule.file_systems.empty());
  note(Attribute::uid, !rule.uids.empty());
  note(Attribute::node, !rule.nodes.empty());
  note(Attribute::target, !rule.targets.empty());
  note(Attribute::owner, !rule.owners.empty());
  note(Attribute::directory, !rule.directories.empty());
  note(Attribute::jobid, !rule.jobids.empty());
  note(Attribute::gid, !rule.gids.empty());
  note(Attribute::account, !rule.accounts.empty());
  looks_at_kind_ = looks_at_kind_ || !rule.kinds.empty();
  looks_at_client_ = looks_at_client_ || !rule.clients.empty();
}

std::size_t RuleSet::index_of_hint(const std::string& name) {
  const auto found = std::ranges::find(hint_names_, name);
  if (found != hint_names_.end()) return static_cast<std::size_t>(found - hint_names_.begin());
  hint_names_.push_back(name);
  return hint_names_.size() - 1;
}

bool RuleSet::looks_at_job() const {
  return looked_at_.has(Attribute::jobid) || looked_at_.has(Attribute::gid) ||
         looked_at_.has(Attribute::account);
}

bool RuleSet::demands_hint(const Rule& rule, std::string_view name) const {
  return std::ranges::any_of(rule.hints, [&](const Rule::HintCondition& condition) {
    return hint_names_[condition.index] == name;
  });
}

std::string RuleSet::fill_in(const Rule& rule, const Sight& sight) const {
  std::string_view name = targets_[rule.number].virtual_pfs;
  std::string filled;
  while (!name.empty()) {
    const std::size_t open = name.find('{');
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) break;
    filled += name.substr(0, open);
    const std::string_view field = name.substr(open + 1, close - open - 1);
    const std::optional<Attribute> attribute = template_attribute(field);
    if (demands_hint(rule, field)) {
      const auto found = std::ranges::find(hint_names_, field);
      const auto value = sight.hint(static_cast<std::size_t>(found - hint_names_.begin()));
      if (value) filled += *value;
    } else if (attribute) {
      filled += value_of(sight, *attribute);
    }
    name.remove_prefix(close + 1);
  }
  return filled.append(name);
}

}  // namespace vpfs::stage
