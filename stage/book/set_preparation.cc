// Whole sets of rules: applied, confirmed, taken back.
#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "stage/book/preparation.h"
#include "stage/book/rule_set_file.h"
#include "stage/config/live_words.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {

std::vector<Suspended> BookPreparation::suspended_now() const {
  if (known_.suspended != nullptr) return *known_.suspended;
  return Composer(parse_).compose(file_, state_).suspended;
}

std::vector<Suspended> BookPreparation::suspended_with(const LiveSet& set,
                                                       const BookState& state) const {
  Composer composer = known_.composer == nullptr ? Composer(parse_) : *known_.composer;
  composer.forget_promises();
  return composer.compose(file_, set, state, known_.read).suspended;
}

BookPreparation::Problem BookPreparation::promise_problem() const {
  BookState trial = state_;
  const std::optional<std::string> failed = change(trial, change_.operation);
  VPFS_ASSERT(!failed);
  const std::vector<Suspended> after = suspended_with(administrators_of(trial), trial);
  for (const Suspended& each : newly_suspended(suspended_now(), after)) {
    // Rules that are made here go before the coordinator's.
    if (each.origin == RuleOrigin::coordinator) continue;
    return invalid(each.place, fmt::format("'{}' would not be in force: {}", each.name, each.text));
  }
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::set_problem(const LiveSet& set) const {
  const std::vector<Suspended> after = suspended_with(set, state_);
  const std::vector<Suspended> newly = newly_suspended(suspended_now(), after);
  for (const Suspended& each : after) {
    // Rules that are made here go before the coordinator's.
    if (each.origin == RuleOrigin::coordinator) continue;
    const bool is_new = std::ranges::find(newly, each) != newly.end();
    if (each.origin == RuleOrigin::administrator || is_new) {
      return invalid(fmt::format("{}.{}", each.name, each.place), each.text);
    }
  }
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::names_problem(
    const std::vector<ApplySet::Rule>& rules) const {
  // A rule that was here before the coordinator's is found instead of it, and may stay.
  std::unordered_set<std::string_view> own;
  for (const auto& rule : set_.rules) own.insert(rule->text.name);
  std::unordered_map<std::string_view, const LiveRule*> of_site;
  for (const auto& rule : state_.coordinators) of_site.emplace(rule->text.name, rule.get());
  std::unordered_set<std::string_view> of_file;
  for (const RuleConfig& rule : file_.rules) of_file.insert(rule.name);
  for (const VirtualPfsConfig& each : file_.virtual_pfs) of_file.insert(each.name);
  for (const ApplySet::Rule& rule : rules) {
    const std::string& name = rule.text.name;
    const auto site = of_site.find(name);
    if (site != of_site.end() && !own.contains(name)) {
      if (Problem taken = is_of_site(*site->second)) return taken;
    }
    // Only what has a name of the file needs a look at all of it.
    const bool is_usual = is_good_name(name) && name != "default" &&
                          !name.starts_with(kJobRulePrefix) && !of_file.contains(name);
    if (is_usual) continue;
    if (Problem found = name_problem(rule.text, RuleOrigin::administrator)) return found;
  }
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(ApplySet apply) {
  if (Problem found = waits_for_confirmation()) return found;
  if (file_.is_site && !apply.shares.empty()) {
    return invalid("virtual_pfs",
                   "a coordinator has rules alone: give each rule its share, or declare the "
                   "virtual PFS in the files of the stages");
  }
  if (apply.rules.size() > RuleBook::kMostRules) {
    return invalid("", fmt::format("more than {} rules", RuleBook::kMostRules));
  }
  const auto twice = [](const std::string& name) {
    return invalid("NAME", fmt::format("'{}' is given twice", name));
  };
  std::set<std::string_view> shares;
  for (ApplySet::DeclaredShare& share : apply.shares) {
    if (!shares.insert(share.virtual_pfs).second) return twice(share.virtual_pfs);
    if (!is_good_name(share.virtual_pfs)) {
      return invalid("NAME", "a virtual PFS has 1 to 128 bytes of printable ASCII as its name");
    }
    if (auto braces = template_problem(share.virtual_pfs)) return invalid("NAME", *braces);
    share.overrides = is_of_file(file_, share.virtual_pfs);
  }
  std::set<std::string_view> names;
  for (const ApplySet::Rule& rule : apply.rules) {
    if (!names.insert(rule.text.name).second) return twice(rule.text.name);
  }
  if (Problem found = names_problem(apply.rules)) return found;
  SetContexts contexts(apply, file_, state_);
  for (ApplySet::Rule& rule : apply.rules) {
    auto made = read(rule.text, contexts.of(rule.text));
    if (!made) {
      made.error().place = fmt::format("{}.{}", rule.text.name, made.error().place);
      return std::move(made.error());
    }
    rule = {.text = std::move(made->text), .until = made->until ? made->until : rule.until};
    if (Problem found = time_problem(rule.until, "for")) return found;
  }
  if (Problem found = set_problem(applied(set_, apply, at_, change_.operation.who))) return found;
  change_.operation.what = std::move(apply);
  find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const Confirm&) {
  if (!state_.pending) return invalid("", "nothing waits for confirmation");
  if (state_.pending->deadline <= at_) return invalid("", "the time to confirm is over");
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const Rollback& rollback) {
  const LiveSet* const set = set_of(state_, rollback.version);
  if (set == nullptr) {
    return problem(
        ProblemCode::not_found, "VERSION",
        fmt::format("version {} is not in the history (it has {} to {})", rollback.version,
                    state_.history.empty() ? 0 : state_.history.front().version, state_.version));
  }
  if (rollback.version == state_.version && !state_.pending) {
    return invalid("VERSION", fmt::format("version {} is in force", rollback.version));
  }
  const LiveSet running = running_at(*set, at_);
  if (Problem found = set_problem(running)) return found;
  for (const auto& rule : set->rules) {
    const auto& until = rule->until;
    if (until && *until <= at_) {
      change_.warnings.push_back(
          fmt::format("the rule '{}' does not come back: its time is over", rule->text.name));
    }
  }
  find_differences();
  return std::nullopt;
}

}  // namespace vpfs::stage
