#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "stage/classifier.h"
#include "stage/template_name.h"

namespace vpfs::stage {

// The expected result of Classifier::classify(), found by trying all rules in turn. It shares only
// addresses, jobs and is_good_name() with the classifier.
class TryInTurn {
 public:
  TryInTurn(std::vector<RuleConfig> rules, std::vector<std::string> hint_names,
            std::uint8_t default_class, const JobRegistry* jobs)
      : rules_(std::move(rules)),
        hint_names_(std::move(hint_names)),
        default_class_(default_class),
        jobs_(jobs) {}

  [[nodiscard]] Classifier::Match classify(const Address& client, const Identity& identity) const {
    std::vector<std::optional<std::string_view>> hints(identity.hints.begin(),
                                                       identity.hints.end());
    Identity seen = identity;
    seen.hints = hints;
    const std::size_t job = place_of(kJobHint);
    const bool is_false = jobs_ != nullptr && job < hints.size() && hints[job] &&
                          !jobs_->admits(*hints[job], client, identity.uid);
    if (is_false) hints[job].reset();
    Classifier::Match match = first_match(client, seen);
    match.job_not_registered = is_false;
    return match;
  }

 private:
  [[nodiscard]] Classifier::Match first_match(const Address& client, const Identity& seen) const {
    Classifier::Match match = {
        .virtual_pfs = "default", .declared_name = "default", .traffic_class = default_class_};
    for (const RuleConfig& rule : rules_) {
      if (!matches(rule, client, seen)) continue;
      const std::optional<std::string> name = name_of(rule, seen);
      if (!name) continue;  // the request does not show what the template needs
      match.name_refused = !template_fields(rule.virtual_pfs).empty() && !is_good_name(*name);
      if (match.name_refused) return match;
      return {.virtual_pfs = *name,
              .declared_name = rule.virtual_pfs,
              .traffic_class = rule.traffic_class};
    }
    return match;
  }

  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::find(hint_names_, name) - hint_names_.begin());
  }
  [[nodiscard]] static bool matches_pattern(const std::string& pattern, std::string_view text) {
    return ::fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
  }
  [[nodiscard]] static bool holds(const std::vector<std::uint64_t>& wanted,
                                  std::optional<std::uint64_t> number) {
    return wanted.empty() || (number && std::ranges::find(wanted, *number) != wanted.end());
  }

  [[nodiscard]] bool matches(const RuleConfig& rule, const Address& client,
                             const Identity& seen) const {
    const auto shows = [&](const std::pair<std::string, std::string>& wanted) {
      const auto value = seen.hints[place_of(wanted.first)];
      return value && matches_pattern(wanted.second, *value);
    };
    const auto is_from = [&](const std::string& block) {
      return AddressBlock::parse(block)->contains(client);
    };
    const auto is_in = [&](const std::string& pattern) {
      return !seen.directory.empty() && matches_pattern(pattern, seen.directory);
    };
    return (!rule.kind || *rule.kind == seen.kind) &&
           holds(rule.file_systems, static_cast<std::uint64_t>(seen.file_system)) &&
           holds(rule.uids, seen.uid) && holds(rule.nodes, seen.node) &&
           holds(rule.targets, seen.target) && holds(rule.owners, seen.owner) &&
           std::ranges::all_of(rule.hints, shows) &&
           (rule.clients.empty() || std::ranges::any_of(rule.clients, is_from)) &&
           (rule.directories.empty() || std::ranges::any_of(rule.directories, is_in));
  }

  [[nodiscard]] std::optional<std::string> value_of(const RuleConfig& rule,
                                                    const std::string& field,
                                                    const Identity& seen) const {
    if (std::ranges::any_of(rule.hints, [&](const auto& each) { return each.first == field; })) {
      return std::string(*seen.hints[place_of(field)]);
    }
    if (field == "dir") {
      return seen.directory.empty() ? std::nullopt : std::optional(std::string(seen.directory));
    }
    const auto number = field == "uid"      ? seen.uid
                        : field == "node"   ? seen.node
                        : field == "target" ? seen.target
                                            : seen.owner;
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> name_of(const RuleConfig& rule,
                                                   const Identity& seen) const {
    std::string name;
    std::size_t at = 0;
    for (const std::string& field : template_fields(rule.virtual_pfs)) {
      const std::optional<std::string> value = value_of(rule, field, seen);
      if (!value) return std::nullopt;
      const std::size_t open = rule.virtual_pfs.find('{', at);
      name += rule.virtual_pfs.substr(at, open - at) + *value;
      at = open + field.size() + 2;
    }
    return name + rule.virtual_pfs.substr(at);
  }

  std::vector<RuleConfig> rules_;
  std::vector<std::string> hint_names_;
  std::uint8_t default_class_;
  const JobRegistry* jobs_;
};

}  // namespace vpfs::stage
