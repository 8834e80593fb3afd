#include "proxy/classifier.h"

#include <algorithm>

#include <fnmatch.h>

namespace vpfs::proxy {

Classifier::Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class)
    : default_class_(default_class) {
  for (const RuleConfig& from : rules) {
    Rule rule;
    for (const std::string& client : from.clients) {
      if (const auto block = AddressBlock::parse(client)) rule.clients.push_back(*block);
    }
    for (const auto& [name, pattern] : from.hints) {
      rule.hints.push_back({.index = index_of_hint(name), .pattern = pattern});
    }
    rule.kind = from.kind;
    rule.file_systems = from.file_systems;
    rule.uids = from.uids;
    rule.virtual_pfs = from.virtual_pfs;
    rule.traffic_class = from.traffic_class;
    rules_.push_back(std::move(rule));
  }
}

std::size_t Classifier::index_of_hint(const std::string& name) {
  const auto found = std::ranges::find(hint_names_, name);
  if (found != hint_names_.end()) return static_cast<std::size_t>(found - hint_names_.begin());
  hint_names_.push_back(name);
  return hint_names_.size() - 1;
}

bool Classifier::matches(const Rule& rule, const asio::ip::address& client,
                         const Identity& identity) {
  const auto holds = [&](const HintCondition& condition) {
    const std::optional<std::string>& value = identity.hints[condition.index];
    return value && ::fnmatch(condition.pattern.c_str(), value->c_str(), 0) == 0;
  };
  const auto has = [](const std::vector<std::uint64_t>& numbers, std::uint64_t number) {
    return std::ranges::find(numbers, number) != numbers.end();
  };
  if (rule.kind && *rule.kind != identity.kind) return false;
  if (!rule.file_systems.empty() &&
      !has(rule.file_systems, static_cast<std::uint64_t>(identity.file_system))) {
    return false;
  }
  if (!rule.uids.empty() && !(identity.uid && has(rule.uids, *identity.uid))) return false;
  if (!rule.clients.empty() && std::ranges::none_of(rule.clients, [&](const auto& block) {
        return block.contains(client);
      })) {
    return false;
  }
  return std::ranges::all_of(rule.hints, holds);
}

std::string Classifier::fill_in(std::string_view name, const Identity& identity) const {
  std::string filled;
  while (!name.empty()) {
    const std::size_t open = name.find('{');
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) break;
    filled += name.substr(0, open);
    const std::string_view field = name.substr(open + 1, close - open - 1);
    const auto found = std::ranges::find(hint_names_, field);
    if (found != hint_names_.end()) {
      const auto& value = identity.hints[static_cast<std::size_t>(found - hint_names_.begin())];
      if (value) filled += *value;
    }
    name.remove_prefix(close + 1);
  }
  return filled.append(name);
}

Classifier::Match Classifier::classify(const asio::ip::address& client,
                                       const Identity& identity) const {
  for (const Rule& rule : rules_) {
    if (!matches(rule, client, identity)) continue;
    return {.virtual_pfs = fill_in(rule.virtual_pfs, identity),
            .declared_name = rule.virtual_pfs,
            .traffic_class = rule.traffic_class};
  }
  return {.virtual_pfs = "default", .declared_name = "default", .traffic_class = default_class_};
}

}  // namespace vpfs::proxy
