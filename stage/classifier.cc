#include "stage/classifier.h"

#include <algorithm>
#include <utility>

#include <fnmatch.h>

#include "stage/template_name.h"

namespace vpfs::stage {

namespace {

// Of the request; "" when it is not known.
std::string value_of(const Identity& identity, Attribute attribute) {
  const auto text = [](const std::optional<std::uint32_t>& number) {
    return number ? std::to_string(*number) : std::string();
  };
  switch (attribute) {
    case Attribute::uid:
      return text(identity.uid);
    case Attribute::node:
      return text(identity.node);
    case Attribute::target:
      return text(identity.target);
    case Attribute::owner:
      return text(identity.owner);
    case Attribute::directory:
      return identity.directory;
    default:
      return {};
  }
}

// An empty list of wanted ones wants nothing.
bool is_one_of(const std::vector<std::uint64_t>& wanted,
               const std::optional<std::uint64_t>& number) {
  return wanted.empty() || (number && std::ranges::find(wanted, *number) != wanted.end());
}

bool matches_pattern(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

Classifier::Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class,
                       const JobRegistry* jobs)
    : default_class_(default_class), jobs_(jobs) {
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
    rule.nodes = from.nodes;
    rule.targets = from.targets;
    rule.owners = from.owners;
    rule.directories = from.directories;
    rule.virtual_pfs = from.virtual_pfs;
    rule.traffic_class = from.traffic_class;
    for (const std::string& field : template_fields(rule.virtual_pfs)) {
      rule.is_template = true;
      const std::optional<Attribute> attribute = template_attribute(field);
      if (attribute && !demands_hint(rule, field)) rule.needed.push_back(*attribute);
    }
    if (!rule.uids.empty() || std::ranges::find(rule.needed, Attribute::uid) != rule.needed.end()) {
      looks_at_uid_ = true;
    }
    rules_.push_back(std::move(rule));
  }
  const auto job_hint = std::ranges::find(hint_names_, kJobHint);
  if (job_hint != hint_names_.end()) {
    job_hint_ = static_cast<std::size_t>(job_hint - hint_names_.begin());
  }
}

std::size_t Classifier::index_of_hint(const std::string& name) {
  const auto found = std::ranges::find(hint_names_, name);
  if (found != hint_names_.end()) return static_cast<std::size_t>(found - hint_names_.begin());
  hint_names_.push_back(name);
  return hint_names_.size() - 1;
}

bool Classifier::demands_hint(const Rule& rule, std::string_view name) const {
  return std::ranges::any_of(rule.hints, [&](const HintCondition& condition) {
    return hint_names_[condition.index] == name;
  });
}

bool Classifier::matches(const Rule& rule, const Address& client, const Identity& identity) {
  const auto holds = [&](const HintCondition& condition) {
    const std::optional<std::string>& value = identity.hints[condition.index];
    return value && matches_pattern(condition.pattern, *value);
  };
  if (rule.kind && *rule.kind != identity.kind) return false;
  if (!is_one_of(rule.file_systems, static_cast<std::uint64_t>(identity.file_system)) ||
      !is_one_of(rule.uids, identity.uid) || !is_one_of(rule.nodes, identity.node) ||
      !is_one_of(rule.targets, identity.target) || !is_one_of(rule.owners, identity.owner)) {
    return false;
  }
  if (!rule.directories.empty() &&
      std::ranges::none_of(rule.directories, [&](const std::string& pattern) {
        return !identity.directory.empty() && matches_pattern(pattern, identity.directory);
      })) {
    return false;
  }
  if (!rule.clients.empty() && std::ranges::none_of(rule.clients, [&](const auto& block) {
        return block.contains(client);
      })) {
    return false;
  }
  const auto is_known = [&](Attribute each) { return !value_of(identity, each).empty(); };
  return std::ranges::all_of(rule.needed, is_known) && std::ranges::all_of(rule.hints, holds);
}

std::string Classifier::fill_in(const Rule& rule, const Identity& identity) const {
  std::string_view name = rule.virtual_pfs;
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
      const auto& value = identity.hints[static_cast<std::size_t>(found - hint_names_.begin())];
      if (value) filled += *value;
    } else if (attribute) {
      filled += value_of(identity, *attribute);
    }
    name.remove_prefix(close + 1);
  }
  return filled.append(name);
}

std::optional<std::size_t> Classifier::false_job(const Address& client,
                                                 const Identity& identity) const {
  if (jobs_ == nullptr || !job_hint_) return std::nullopt;
  const std::optional<std::string>& job = identity.hints[*job_hint_];
  if (!job || jobs_->admits(*job, client, identity.uid)) return std::nullopt;
  return job_hint_;
}

Classifier::Match Classifier::classify(const Address& client, const Identity& identity) const {
  const std::optional<std::size_t> hint = false_job(client, identity);
  if (!hint) return first_match(client, identity);
  Identity without = identity;
  without.hints[*hint].reset();
  Match match = first_match(client, without);
  match.job_not_registered = true;
  return match;
}

Classifier::Match Classifier::first_match(const Address& client, const Identity& identity) const {
  for (const Rule& rule : rules_) {
    if (!matches(rule, client, identity)) continue;
    std::string name = fill_in(rule, identity);
    if (rule.is_template && !is_good_name(name)) {
      return {.virtual_pfs = "default",
              .declared_name = "default",
              .traffic_class = default_class_,
              .name_refused = true};
    }
    return {.virtual_pfs = std::move(name),
            .declared_name = rule.virtual_pfs,
            .traffic_class = rule.traffic_class};
  }
  return {.virtual_pfs = "default", .declared_name = "default", .traffic_class = default_class_};
}

}  // namespace vpfs::stage
