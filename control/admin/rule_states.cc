#include "control/admin/rule_states.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "stage/book/changes.h"
#include "stage/config/live_words.h"
#include "stage/rules/rule_checks.h"

namespace vpfs::control {
namespace {

using Counted = std::unordered_map<std::string_view, const StageSnapshot::Rule*>;

std::string_view name_of(stage::RuleOrigin origin) {
  switch (origin) {
    case stage::RuleOrigin::file:
      return "file";
    case stage::RuleOrigin::administrator:
      return "administrator";
    case stage::RuleOrigin::job:
      return "job";
    case stage::RuleOrigin::coordinator:
      return "coordinator";
  }
  return "";
}

void fill_times(RuleState& state, const std::string& by, WallTime since,
                const std::optional<WallTime>& until) {
  state.set_by(by);
  state.set_since_at(seconds_since_epoch(since));
  if (until) state.set_until_at(seconds_since_epoch(*until));
}

// The live rules and shares of a book by their names, so that a list of many does not search for
// each. The book outlives it.
class LiveIndex {
 public:
  explicit LiveIndex(const stage::BookState& book) : book_(book) {
    const stage::LiveSet& set = stage::administrators_of(book);
    for (const auto& each : set.rules) rules_.emplace(each->text.name, each.get());
    for (const auto& each : book.coordinators) site_rules_.emplace(each->text.name, each.get());
    for (const auto& each : set.shares) shares_.emplace(each->virtual_pfs, each.get());
  }

  // Null: it is not a live one. A coordinator's may have the name of one that was made here.
  [[nodiscard]] const stage::LiveRule* rule(std::string_view name, stage::RuleOrigin origin) const {
    if (origin == stage::RuleOrigin::coordinator) return in(site_rules_, name);
    // Those of jobs are found by their job, and come before others of that name.
    if (origin == stage::RuleOrigin::job) return stage::find_rule(book_, name).get();
    const stage::LiveRule* const found = in(rules_, name);
    return found != nullptr ? found : in(site_rules_, name);
  }
  [[nodiscard]] const stage::LiveShare* share(std::string_view virtual_pfs) const {
    return in(shares_, virtual_pfs);
  }

 private:
  template <typename T>
  using ByName = std::unordered_map<std::string_view, const T*>;
  template <typename T>
  static const T* in(const ByName<T>& all, std::string_view name) {
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second;
  }

  const stage::BookState& book_;
  ByName<stage::LiveRule> rules_;
  ByName<stage::LiveRule> site_rules_;
  ByName<stage::LiveShare> shares_;
};

// Adds the author of a rule, and until when it holds. An administrator may have changed the share
// of a rule of the file.
void fill_author(RuleState& state, const stage::RuleConfig& rule, const LiveIndex& live) {
  if (const auto* const found = live.rule(rule.name, rule.origin)) {
    return fill_times(state, found->by, found->since, found->until);
  }
  const auto* const share = live.share(rule.virtual_pfs);
  if (share != nullptr) fill_times(state, share->by, share->since, share->until);
}

void fill_counts(RuleState& state, const Counted& counted) {
  const auto found = counted.find(state.name());
  if (found == counted.end()) return;
  const StageSnapshot::Rule& row = *found->second;
  state.set_hits(row.hits);
  state.set_virtual_pfs_made(row.made);
  if (!row.would_hold) return;
  Shadow& shadow = *state.mutable_would_hold();
  shadow.set_requests(row.would_hold->would_hold.requests);
  shadow.set_bytes(row.would_hold->would_hold.bytes);
  shadow.set_seconds_us(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(row.would_hold->held).count()));
}

RuleState state_of(const stage::RuleConfig& rule, const stage::Config& config) {
  RuleState state;
  state.set_name(rule.name);
  state.set_condition(rule.text.condition);
  for (const std::string& word : rule.text.words) state.add_words(word);
  state.set_virtual_pfs(rule.virtual_pfs);
  state.set_origin(std::string(name_of(rule.origin)));
  state.set_shadow(rule.mode == stage::RuleMode::shadow);
  const auto& classes = config.scheduler.classes.classes;
  if (rule.traffic_class < classes.size()) state.set_class_(classes[rule.traffic_class].name);
  return state;
}

RuleState default_rule(const stage::Config& config, const LiveIndex& live) {
  stage::RuleConfig rule = {.name = "default"};
  rule.virtual_pfs = "default";
  rule.traffic_class = stage::default_class(config);
  const auto declared =
      std::ranges::find(config.virtual_pfs, "default", &stage::VirtualPfsConfig::name);
  if (declared != config.virtual_pfs.end()) rule.text.words = stage::words_of_share(*declared);
  if (live.share("default") != nullptr) rule.origin = stage::RuleOrigin::administrator;
  RuleState state = state_of(rule, config);
  fill_author(state, rule, live);
  return state;
}

}  // namespace

void add_rules(google::protobuf::RepeatedPtrField<RuleState>& to, const LiveState& live,
               const std::vector<StageSnapshot::Rule>& counted) {
  const stage::Config& config = live.composed().config;
  const LiveIndex index(live.book().state());
  Counted by_name;
  for (const StageSnapshot::Rule& each : counted) by_name.emplace(*each.name, &each);
  const auto hidden_by = stage::hiding_rules(config.rules);
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    RuleState state = state_of(config.rules[i], config);
    fill_author(state, config.rules[i], index);
    fill_counts(state, by_name);
    if (hidden_by[i]) state.set_hidden_by(config.rules[*hidden_by[i]].name);
    *to.Add() = std::move(state);
  }
  RuleState last = default_rule(config, index);
  fill_counts(last, by_name);
  *to.Add() = std::move(last);
  for (const stage::Suspended& each : live.composed().suspended) {
    RuleState state;
    state.set_name(each.name);
    state.set_origin(std::string(name_of(each.origin)));
    if (const auto* const rule = index.rule(each.name, each.origin)) {
      state.set_condition(rule->text.condition);
      for (const std::string& word : rule->text.words) state.add_words(word);
      fill_times(state, rule->by, rule->since, rule->until);
    }
    state.set_problem(each.place.empty() ? each.text : each.place + ": " + each.text);
    *to.Add() = std::move(state);
  }
}

Difference to_message(const stage::Difference& difference) {
  Difference message;
  message.set_name(difference.name);
  message.set_kind(std::string(stage::name_of(difference.kind)));
  message.set_before(difference.before);
  message.set_after(difference.after);
  return message;
}

}  // namespace vpfs::control
