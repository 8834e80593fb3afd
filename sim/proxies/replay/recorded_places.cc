#include "sim/proxies/replay/recorded_places.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "stage/rules/pattern.h"
#include "stage/rules/template_name.h"

namespace vpfs::sim {
namespace {

constexpr std::string_view kDefault = "default";

void append_literal(std::string& pattern, std::string_view text) {
  for (const char each : text) {
    if (each == '*' || each == '?' || each == '[' || each == '\\') pattern += '\\';
    pattern += each;
  }
}

// The names that a rule's template makes of such requests. What is not recorded may be anything.
stage::Pattern names_of(std::string_view name, const RecordedSource& who,
                        const std::string& jobid) {
  std::string pattern;
  for (std::size_t open = name.find('{'); open != std::string_view::npos; open = name.find('{')) {
    const std::size_t close = name.find('}', open);
    const std::string_view field = name.substr(open + 1, close - open - 1);
    append_literal(pattern, name.substr(0, open));
    if (field == "jobid" && !jobid.empty()) {
      append_literal(pattern, jobid);
    } else if (field == "uid" && who.uid) {
      pattern += std::to_string(*who.uid);
    } else {
      pattern += "?*";
    }
    name.remove_prefix(close + 1);
  }
  append_literal(pattern, name);
  return stage::Pattern(pattern);
}

bool takes(const stage::RuleConfig& rule, IoKind kind) {
  if (rule.mode != stage::RuleMode::enforce) return false;
  return rule.any_of.empty() || std::ranges::any_of(rule.any_of, [kind](const auto& conditions) {
           return conditions.kinds.empty() ||
                  std::ranges::find(conditions.kinds, kind) != conditions.kinds.end();
         });
}

// A request may match it for a reason that no recording shows.
bool asks_for_more(const stage::RuleConfig& rule) {
  const auto is_more = [](const stage::Conditions& each) {
    return !each.file_systems.empty() || !each.nodes.empty() || !each.targets.empty() ||
           !each.owners.empty() || !each.directories.empty() || !each.accounts.empty() ||
           !each.gids.empty() || std::ranges::any_of(each.hints, [](const auto& hint) {
             return hint.first != stage::kJobHint;
           });
  };
  const auto is_recorded = [](const std::string& field) {
    return field == "uid" || field == "jobid";
  };
  return std::ranges::any_of(rule.any_of, is_more) ||
         !std::ranges::all_of(stage::template_fields(rule.virtual_pfs), is_recorded);
}

}  // namespace

// What the rules give that may have led to a virtual PFS.
class RecordedPlaces::Candidates {
 public:
  void add(const Standing& standing) {
    if (!first_) first_ = standing;
    differ_ = differ_ || *first_ != standing;
  }
  void add(const stage::RuleConfig& rule) {
    add({.declared_name = rule.virtual_pfs,
         .traffic_class = rule.traffic_class,
         .exempt = rule.exempt});
  }
  [[nodiscard]] const std::optional<Standing>& first() const { return first_; }
  [[nodiscard]] bool differ() const { return differ_; }

 private:
  std::optional<Standing> first_;
  bool differ_ = false;
};

std::optional<RecordedPlaces::Standing> RecordedPlaces::standing_of(
    const RecordedSource& who, IoKind kind, const stage::Classifier::Match& match) {
  const std::string& name = who.virtual_pfs;
  if (name.empty()) return std::nullopt;  // it is one of too many
  const bool declared = name == kDefault || std::ranges::find(config_.virtual_pfs, name,
                                                              &stage::VirtualPfsConfig::name) !=
                                                config_.virtual_pfs.end();
  const Standing without_rule = {.declared_name = name,
                                 .traffic_class = stage::default_class(config_)};
  std::vector<const stage::RuleConfig*> leading;
  for (const stage::RuleConfig& rule : config_.rules) {
    const bool is_template = !declared && rule.virtual_pfs.find('{') != std::string::npos;
    const bool leads = is_template ? names_of(rule.virtual_pfs, who, match.jobid).matches(name)
                                   : rule.virtual_pfs == name;
    if (leads && takes(rule, kind)) leading.push_back(&rule);
  }

  Candidates candidates;
  if (!who.is_unknown && match.virtual_pfs == name) {
    candidates.add({.declared_name = match.declared_name,
                    .traffic_class = match.traffic_class,
                    .exempt = match.exempt});
  }
  for (const stage::RuleConfig* const rule : leading) {
    if (who.is_unknown || asks_for_more(*rule)) candidates.add(*rule);
  }
  if (who.is_unknown && name == kDefault) candidates.add(without_rule);
  // The recording may have been made with other rules.
  if (!candidates.first()) {
    for (const stage::RuleConfig* const rule : leading) candidates.add(*rule);
  }
  if (!candidates.first() && declared) candidates.add(without_rule);
  if (candidates.differ()) ambiguous_.insert(name);
  return candidates.first();
}

bool RecordedPlaces::keep(const RecordedSource& who, IoKind kind, stage::Classifier::Match& match) {
  const std::optional<Standing> standing = standing_of(who, kind, match);
  if (!standing) return false;
  match.virtual_pfs = who.virtual_pfs;
  match.declared_name = standing->declared_name;
  match.traffic_class = standing->traffic_class;
  match.exempt = standing->exempt;
  match.rule = stage::Classifier::kNoRule;
  return true;
}

}  // namespace vpfs::sim
