#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "stage/rules/classifier.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {

// The expected result of Classifier::classify(), found by trying all rules and all jobs in turn. It
// shares only addresses and is_good_name() with the classifier.
class TryInTurn {
 public:
  TryInTurn(std::vector<RuleConfig> rules, std::vector<std::string> hint_names,
            std::uint8_t default_class, std::vector<RegisteredJob> jobs = {},
            JobIds ids = JobIds::trusted)
      : rules_(std::move(rules)),
        hint_names_(std::move(hint_names)),
        default_class_(default_class),
        jobs_(std::move(jobs)),
        ids_(ids) {}

  [[nodiscard]] Classifier::Match classify(const Address& client, const Identity& identity) const {
    std::vector<std::optional<std::string_view>> hints(identity.hints.begin(),
                                                       identity.hints.end());
    Seen seen = {.identity = identity};
    seen.identity.hints = hints;
    const std::size_t place = place_of(kJobHint);
    if (place < hints.size()) find_job(client, hints[place], seen);
    if (seen.is_false) hints[place].reset();

    Classifier::Match match = first_match(client, seen);
    match.job_not_registered = seen.is_false;
    match.job_from_registration = seen.from_registration;
    if (seen.jobid && is_good_name(*seen.jobid)) match.jobid = *seen.jobid;
    if (seen.job != nullptr) match.nodes = seen.job->nodes;
    return match;
  }

 private:
  struct Seen {
    Identity identity;
    std::optional<std::string> jobid = std::nullopt;
    const RegisteredJob* job = nullptr;
    bool is_false = false;
    bool from_registration = false;
  };

  void find_job(const Address& client, std::optional<std::string_view> shown, Seen& seen) const {
    const auto admits = [&](const RegisteredJob& job) {
      return holds(job.uids, seen.identity.uid ? std::optional<std::uint64_t>(*seen.identity.uid)
                                               : first_of(job.uids)) &&
             std::ranges::any_of(job.clients, [&](const std::string& block) {
               return AddressBlock::parse(block)->contains(client);
             });
    };
    if (shown) {
      const auto job = std::ranges::find(jobs_, *shown, &RegisteredJob::jobid);
      const bool is_admitted = job != jobs_.end() && admits(*job);
      seen.is_false = ids_ == JobIds::registered && !is_admitted;
      if (is_admitted) seen.job = &*job;
      if (!seen.is_false) {
        seen.jobid = *shown;
        return;
      }
    }
    if (std::ranges::count_if(jobs_, admits) != 1) return;
    seen.job = &*std::ranges::find_if(jobs_, admits);
    seen.jobid = seen.job->jobid;
    seen.from_registration = true;
  }
  static std::optional<std::uint64_t> first_of(const std::vector<std::uint64_t>& numbers) {
    return numbers.empty() ? std::nullopt : std::optional(numbers.front());
  }

  [[nodiscard]] Classifier::Match first_match(const Address& client, const Seen& seen) const {
    Classifier::Match match = {
        .virtual_pfs = "default", .declared_name = "default", .traffic_class = default_class_};
    bool saw_shadow = false;
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      const RuleConfig& rule = rules_[i];
      const bool is_shadow = rule.mode == RuleMode::shadow;
      if (is_shadow && saw_shadow) continue;
      const std::optional<std::string> name = name_if_it_matches(rule, client, seen);
      if (!name) continue;
      const bool is_good = template_fields(rule.virtual_pfs).empty() || is_good_name(*name);
      if (is_shadow) {
        saw_shadow = true;
        if (!is_good) continue;
        match.shadow_rule = i;
        match.shadow_name = *name;
        continue;
      }
      match.name_refused = !is_good;
      if (!is_good) return match;
      match.virtual_pfs = *name;
      match.declared_name = rule.virtual_pfs;
      match.traffic_class = rule.traffic_class;
      match.rule = i;
      match.exempt = rule.exempt;
      return match;
    }
    return match;
  }
  [[nodiscard]] std::optional<std::string> name_if_it_matches(const RuleConfig& rule,
                                                              const Address& client,
                                                              const Seen& seen) const {
    std::vector<Conditions> any_of = rule.any_of;
    if (any_of.empty()) any_of.emplace_back();
    for (const Conditions& each : any_of) {
      if (!matches(each, client, seen)) continue;
      // Nothing: the request does not show what the template needs.
      if (const auto name = name_of(rule.virtual_pfs, each, seen)) return name;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::find(hint_names_, name) - hint_names_.begin());
  }
  [[nodiscard]] static bool matches_one(const std::vector<std::string>& patterns,
                                        std::string_view text) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
    });
  }
  [[nodiscard]] static bool holds(const std::vector<std::uint64_t>& wanted,
                                  std::optional<std::uint64_t> number) {
    return wanted.empty() || (number && std::ranges::find(wanted, *number) != wanted.end());
  }

  [[nodiscard]] bool matches(const Conditions& rule, const Address& client,
                             const Seen& seen) const {
    const Identity& identity = seen.identity;
    const auto shows = [&](const auto& wanted) {
      const auto value = identity.hints[place_of(wanted.first)];
      return value && matches_one(wanted.second, *value);
    };
    const auto is_from = [&](const std::string& block) {
      return AddressBlock::parse(block)->contains(client);
    };
    const auto has_group = [&](std::uint64_t gid) {
      return seen.job != nullptr && !seen.job->gids.empty() && holds(seen.job->gids, gid);
    };
    return (rule.kinds.empty() ||
            std::ranges::find(rule.kinds, identity.kind) != rule.kinds.end()) &&
           holds(rule.file_systems, static_cast<std::uint64_t>(identity.file_system)) &&
           holds(rule.uids, identity.uid) && holds(rule.nodes, identity.node) &&
           holds(rule.targets, identity.target) && holds(rule.owners, identity.owner) &&
           std::ranges::all_of(rule.hints, shows) &&
           (rule.clients.empty() || std::ranges::any_of(rule.clients, is_from)) &&
           (rule.directories.empty() ||
            (!identity.directory.empty() && matches_one(rule.directories, identity.directory))) &&
           (rule.gids.empty() || std::ranges::any_of(rule.gids, has_group)) &&
           (rule.jobids.empty() || (seen.jobid && matches_one(rule.jobids, *seen.jobid))) &&
           (rule.accounts.empty() || (seen.job != nullptr && !seen.job->account.empty() &&
                                      matches_one(rule.accounts, seen.job->account)));
  }

  [[nodiscard]] std::optional<std::string> value_of(const Conditions& rule,
                                                    const std::string& field,
                                                    const Seen& seen) const {
    const Identity& identity = seen.identity;
    const auto unless_empty = [](std::string_view text) {
      return text.empty() ? std::nullopt : std::optional(std::string(text));
    };
    if (std::ranges::any_of(rule.hints, [&](const auto& each) { return each.first == field; })) {
      return std::string(*identity.hints[place_of(field)]);
    }
    if (field == "jobid") return seen.jobid;
    if (field == "dir") return unless_empty(identity.directory);
    if (field == "account")
      return seen.job == nullptr ? std::nullopt : unless_empty(seen.job->account);
    std::optional<std::uint64_t> number;
    if (field == "uid") number = identity.uid;
    if (field == "node") number = identity.node;
    if (field == "target") number = identity.target;
    if (field == "owner") number = identity.owner;
    if (field == "gid" && seen.job != nullptr) number = first_of(seen.job->gids);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> name_of(const std::string& from, const Conditions& rule,
                                                   const Seen& seen) const {
    std::string name;
    std::size_t at = 0;
    for (const std::string& field : template_fields(from)) {
      const std::optional<std::string> value = value_of(rule, field, seen);
      if (!value) return std::nullopt;
      const std::size_t open = from.find('{', at);
      name += from.substr(at, open - at) + *value;
      at = open + field.size() + 2;
    }
    return name + from.substr(at);
  }

  std::vector<RuleConfig> rules_;
  std::vector<std::string> hint_names_;
  std::uint8_t default_class_;
  std::vector<RegisteredJob> jobs_;
  JobIds ids_;
};

}  // namespace vpfs::stage
