#include "control/site/site_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using control::RuleState;

constexpr const char* kDefault = "default";

// Rules of the same name may differ from stage to stage.
using Key = std::tuple<std::string, std::string, std::string, std::vector<std::string>>;

Key key_of(const RuleState& rule) {
  return {rule.origin(), rule.name(), rule.condition(), {rule.words().begin(), rule.words().end()}};
}

// A stage where the rule is not in force does not count as one that has it.
void add_counts(RuleState& to, const RuleState& from) {
  if (from.problem().empty()) to.set_stages(to.stages() + 1);
  to.set_hits(to.hits() + from.hits());
  to.set_virtual_pfs_made(to.virtual_pfs_made() + from.virtual_pfs_made());
  if (!from.has_would_hold()) return;
  control::Shadow& all = *to.mutable_would_hold();
  all.set_requests(all.requests() + from.would_hold().requests());
  all.set_bytes(all.bytes() + from.would_hold().bytes());
  all.set_seconds_us(all.seconds_us() + from.would_hold().seconds_us());
}

RuleState without_counts(RuleState rule) {
  rule.clear_hits();
  rule.clear_virtual_pfs_made();
  rule.clear_would_hold();
  return rule;
}

}  // namespace

void add_lists_of_stages(control::RuleReply& list, const control::ForwardReply& stages) {
  // A site has no file of rules; its list ends with a `default` that takes no requests.
  const auto told = [](const auto& each) { return each.answer().has_rule_reply(); };
  if (std::ranges::any_of(stages.answers(), told)) {
    auto& own = *list.mutable_rules();
    const auto is_of_file = [](const RuleState& rule) { return rule.origin() == "file"; };
    own.erase(std::remove_if(own.begin(), own.end(), is_of_file), own.end());
  }
  std::map<std::string, RuleState*> of_site;
  for (RuleState& rule : *list.mutable_rules()) of_site.emplace(rule.name(), &rule);
  std::map<Key, std::size_t> places;
  std::vector<RuleState> others;
  for (const control::ForwardReply::Answer& each : stages.answers()) {
    if (!each.answer().has_rule_reply()) {
      list.add_warnings(fmt::format("{}: {}: its rules and hits are not counted", each.stage(),
                                    each.answer().has_error()
                                        ? control::describe(each.answer().error())
                                        : "gave another answer"));
      continue;
    }
    list.set_stages(list.stages() + 1);
    for (const RuleState& rule : each.answer().rule_reply().rules()) {
      const auto own = of_site.find(rule.name());
      if (rule.origin() == "coordinator" && own != of_site.end()) {
        if (!rule.problem().empty()) {
          list.add_warnings(fmt::format("{}: {} is not in force there: {}", each.stage(),
                                        rule.name(), rule.problem()));
        }
        add_counts(*own->second, rule);
        continue;
      }
      const auto [place, is_new] = places.try_emplace(key_of(rule), others.size());
      if (is_new) others.push_back(without_counts(rule));
      add_counts(others[place->second], rule);
    }
  }
  for (const bool is_last : {false, true}) {
    for (RuleState& rule : others) {
      if ((rule.name() == kDefault) == is_last) *list.add_rules() = std::move(rule);
    }
  }
}

}  // namespace vpfs::coordinator
