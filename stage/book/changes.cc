#include "stage/book/changes.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

using Problem = std::optional<std::string>;

Problem unknown_rule(const std::string& name) {
  return fmt::format("there is no live rule '{}'", name);
}

// The condition that this id holds and no other.
std::string condition_of_job(const std::string& jobid) {
  std::string pattern;
  bool is_plain = true;
  for (const char c : jobid) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
    if (c == '"') pattern += c;
    is_plain = is_plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                            std::string_view("_.-").find(c) != std::string_view::npos);
  }
  return is_plain ? "jobid=" + pattern : fmt::format("jobid=\"{}\"", pattern);
}

bool ended(const std::optional<WallTime>& until, WallTime at) {
  return until && *until <= at;
}

auto named(std::string_view name) {
  return [name](const std::shared_ptr<const LiveRule>& rule) { return rule->text.name == name; };
}

auto of_virtual_pfs(std::string_view name) {
  return
      [name](const std::shared_ptr<const LiveShare>& share) { return share->virtual_pfs == name; };
}

template <typename T>
void put(std::vector<std::shared_ptr<const T>>& items,
         typename std::vector<std::shared_ptr<const T>>::iterator place, T item) {
  auto made = std::make_shared<const T>(std::move(item));
  if (place == items.end()) {
    items.push_back(std::move(made));
  } else {
    *place = std::move(made);
  }
}

LiveRule changed(const LiveRule& rule, const ChangeRule& change) {
  LiveRule made = rule;
  made.text.words = change.becomes;
  if (change.until) made.until = *change.until;
  return made;
}

bool is_same(const LiveRule& rule, const ReplaceSite::Rule& wanted) {
  return rule.text == wanted.text && rule.until == wanted.until;
}
bool is_same(const LiveJob& job, const ReplaceSite::Job& wanted) {
  return job.job == wanted.job && job.until == wanted.until;
}

class Changer {
 public:
  Changer(BookState& state, const BookOperation& operation)
      : state_(state), operation_(operation), at_(operation.at), who_(operation.who) {}

  Problem operator()(const StartRule& start) {
    if (find_rule(state_, start.rule.name)) {
      return fmt::format("there is a live rule '{}' already", start.rule.name);
    }
    if (start.origin != RuleOrigin::administrator && start.origin != RuleOrigin::coordinator) {
      return "only administrators and coordinators start rules";
    }
    LiveRule rule = {
        .text = start.rule, .origin = start.origin, .by = who_, .since = at_, .until = start.until};
    if (start.origin == RuleOrigin::coordinator) {
      state_.coordinators.push_back(std::make_shared<const LiveRule>(std::move(rule)));
      return std::nullopt;
    }
    // A new rule goes first, as with Lustre: it applies whatever rules there are.
    LiveSet set = administrators_of(state_);
    set.rules.insert(set.rules.begin(), std::make_shared<const LiveRule>(std::move(rule)));
    take(std::move(set), command_of(operation_));
    return std::nullopt;
  }

  Problem operator()(const ChangeRule& change) {
    return on_rule(change.name, [&](const LiveRule& rule) { return changed(rule, change); });
  }

  Problem operator()(const StopRule& stop) {
    return on_rule(stop.name, [](const LiveRule&) { return std::nullopt; });
  }

  Problem operator()(const ChangeShare& change) {
    LiveSet set = administrators_of(state_);
    const auto found = std::ranges::find_if(set.shares, of_virtual_pfs(change.virtual_pfs));
    LiveShare share = {.virtual_pfs = change.virtual_pfs,
                       .overrides = change.overrides,
                       .words = {},
                       .by = who_,
                       .since = at_,
                       .until = std::nullopt};
    if (found != set.shares.end()) share = **found;
    share.words = change.becomes;
    if (change.until) share.until = *change.until;
    put(set.shares, found, std::move(share));
    take(std::move(set), command_of(operation_));
    return std::nullopt;
  }

  Problem operator()(const StopShare& stop) {
    LiveSet set = administrators_of(state_);
    if (std::erase_if(set.shares, of_virtual_pfs(stop.virtual_pfs)) == 0) {
      return fmt::format("the share of '{}' was not changed", stop.virtual_pfs);
    }
    take(std::move(set), command_of(operation_));
    return std::nullopt;
  }

  Problem operator()(const ApplySet& apply) {
    take(applied(administrators_of(state_), apply, at_, who_), command_of(operation_));
    state_.pending.reset();
    return std::nullopt;
  }

  Problem operator()(const Confirm&) {
    if (!state_.pending) return "nothing waits for confirmation";
    state_.pending.reset();
    return std::nullopt;
  }

  Problem operator()(const Rollback& rollback) {
    const LiveSet* const set = set_of(state_, rollback.version);
    if (set == nullptr) return fmt::format("version {} is not in the history", rollback.version);
    take(running_at(*set, at_), command_of(operation_));
    state_.pending.reset();
    return std::nullopt;
  }

  Problem operator()(const StartJob& start) {
    LiveJob& job = state_.jobs[start.job.jobid];
    job = {.job = start.job,
           .origin = start.origin,
           .by = who_,
           .since = at_,
           .until = start.until,
           .rule = nullptr};
    if (!start.words.empty()) {
      job.rule =
          std::make_shared<const LiveRule>(rule_of_job(start.job.jobid, start.words, at_, who_));
    }
    return std::nullopt;
  }

  Problem operator()(const StopJob& stop) {
    if (state_.jobs.erase(stop.jobid) == 0) {
      return fmt::format("the job '{}' is not registered", stop.jobid);
    }
    return std::nullopt;
  }

  Problem operator()(const ReplaceSite& site) {
    state_.coordinators = site_rules(site);
    state_.site_jobs = site_jobs(site);
    return std::nullopt;
  }

  Problem operator()(const SetBypass& set) {
    state_.bypass = {};
    if (set.on) state_.bypass = {.on = true, .by = who_, .since = at_, .until = set.until};
    return std::nullopt;
  }

  Problem operator()(const Expire&) {
    std::string why = "a rule's time is over";
    LiveSet set = administrators_of(state_);
    if (state_.pending && state_.pending->deadline <= at_) {
      const std::uint64_t version = state_.pending->version;
      const LiveSet* const before = set_of(state_, version);
      if (before == nullptr) return fmt::format("version {} is not in the history", version);
      set = *before;
      why = fmt::format("not confirmed: back to version {}", version);
      state_.pending.reset();
    }
    take(running_at(set, at_), why);
    std::erase_if(state_.coordinators, [&](const auto& rule) { return ended(rule->until, at_); });
    std::erase_if(state_.jobs, [&](const auto& job) { return ended(job.second.until, at_); });
    std::erase_if(state_.site_jobs, [&](const auto& job) { return ended(job.second.until, at_); });
    for (auto& [id, job] : state_.jobs) {
      if (job.rule && ended(job.rule->until, at_)) job.rule = nullptr;
    }
    if (ended(state_.bypass.until, at_)) state_.bypass = {};
    return std::nullopt;
  }

 private:
  // Unchanged rules keep their age.
  [[nodiscard]] std::vector<std::shared_ptr<const LiveRule>> site_rules(
      const ReplaceSite& site) const {
    std::unordered_map<std::string_view, const std::shared_ptr<const LiveRule>*> before;
    for (const auto& rule : state_.coordinators) before.emplace(rule->text.name, &rule);
    std::vector<std::shared_ptr<const LiveRule>> rules;
    rules.reserve(site.rules.size());
    for (const ReplaceSite::Rule& rule : site.rules) {
      const auto old = before.find(rule.text.name);
      if (old != before.end() && is_same(**old->second, rule)) {
        rules.push_back(*old->second);
        continue;
      }
      put(rules, rules.end(),
          LiveRule{.text = rule.text,
                   .origin = RuleOrigin::coordinator,
                   .by = site.site,
                   .since = at_,
                   .until = rule.until});
    }
    return rules;
  }
  [[nodiscard]] std::map<std::string, LiveJob, std::less<>> site_jobs(
      const ReplaceSite& site) const {
    std::map<std::string, LiveJob, std::less<>> jobs;
    for (const ReplaceSite::Job& job : site.jobs) {
      LiveJob& made = jobs[job.job.jobid];
      const auto old = state_.site_jobs.find(job.job.jobid);
      if (old != state_.site_jobs.end() && is_same(old->second, job)) {
        made = old->second;
        continue;
      }
      made = {.job = job.job,
              .origin = RuleOrigin::coordinator,
              .by = site.site,
              .since = at_,
              .until = job.until,
              .rule = nullptr};
    }
    return jobs;
  }

  // `make` gives what takes the rule's place, if anything.
  template <typename Make>
  Problem on_rule(const std::string& name, Make make) {
    const auto edit = [&](std::vector<std::shared_ptr<const LiveRule>>& rules) {
      const auto found = std::ranges::find_if(rules, named(name));
      if (found == rules.end()) return false;
      if (std::optional<LiveRule> made = make(**found)) {
        put(rules, found, std::move(*made));
      } else {
        rules.erase(found);
      }
      return true;
    };
    if (std::ranges::any_of(administrators_of(state_).rules, named(name))) {
      LiveSet set = administrators_of(state_);
      (void)edit(set.rules);
      take(std::move(set), command_of(operation_));
      return std::nullopt;
    }
    const auto job = name.starts_with(kJobRulePrefix)
                         ? state_.jobs.find(name.substr(kJobRulePrefix.size()))
                         : state_.jobs.end();
    if (job == state_.jobs.end() || !job->second.rule) {
      return edit(state_.coordinators) ? std::nullopt : unknown_rule(name);
    }
    std::optional<LiveRule> made = make(*job->second.rule);
    job->second.rule = made ? std::make_shared<const LiveRule>(std::move(*made)) : nullptr;
    return std::nullopt;
  }

  // Makes a version of the set, unless it is like the one in force.
  void take(LiveSet set, std::string command) {
    const LiveSet& before = administrators_of(state_);
    if (set == before) return;
    state_.administrators = std::make_shared<const LiveSet>(std::move(set));
    state_.history.push_back({.version = ++state_.version,
                              .at = at_,
                              .who = who_,
                              .command = std::move(command),
                              .set = state_.administrators});
    // One more than is listed, which the oldest of these is compared with.
    while (state_.history.size() > kMostHistory + 1 &&
           !(state_.pending && state_.history.front().version <= state_.pending->version)) {
      state_.history.erase(state_.history.begin());
    }
  }

  BookState& state_;
  const BookOperation& operation_;
  WallTime at_;
  const std::string& who_;
};

}  // namespace

const LiveSet& administrators_of(const BookState& state) {
  static const LiveSet empty;
  return state.administrators ? *state.administrators : empty;
}

const LiveSet* set_of(const BookState& state, std::uint64_t version) {
  static const LiveSet empty;
  if (version == 0) return &empty;
  const auto found = std::ranges::find(state.history, version, &HistoryEntry::version);
  return found == state.history.end() ? nullptr : found->set.get();
}

std::shared_ptr<const LiveRule> find_rule(const BookState& state, std::string_view name) {
  if (name.starts_with(kJobRulePrefix)) {
    const auto job = state.jobs.find(name.substr(kJobRulePrefix.size()));
    if (job != state.jobs.end() && job->second.rule) return job->second.rule;
  }
  const auto& rules = administrators_of(state).rules;
  const auto found = std::ranges::find_if(rules, named(name));
  return found == rules.end() ? find_site_rule(state, name) : *found;
}

std::shared_ptr<const LiveRule> find_site_rule(const BookState& state, std::string_view name) {
  const auto found = std::ranges::find_if(state.coordinators, named(name));
  return found == state.coordinators.end() ? nullptr : *found;
}

bool has_site(const BookState& state, const ReplaceSite& site) {
  const auto same_rule = [](const auto& rule, const ReplaceSite::Rule& wanted) {
    return is_same(*rule, wanted);
  };
  const auto same_job = [&](const ReplaceSite::Job& wanted) {
    const auto found = state.site_jobs.find(wanted.job.jobid);
    return found != state.site_jobs.end() && is_same(found->second, wanted);
  };
  return std::ranges::equal(state.coordinators, site.rules, same_rule) &&
         state.site_jobs.size() == site.jobs.size() && std::ranges::all_of(site.jobs, same_job);
}

std::shared_ptr<const LiveShare> find_share(const LiveSet& set, std::string_view virtual_pfs) {
  const auto found = std::ranges::find_if(set.shares, of_virtual_pfs(virtual_pfs));
  return found == set.shares.end() ? nullptr : *found;
}

LiveSet running_at(const LiveSet& set, WallTime at) {
  LiveSet running = set;
  std::erase_if(running.rules, [&](const auto& rule) { return ended(rule->until, at); });
  std::erase_if(running.shares, [&](const auto& share) { return ended(share->until, at); });
  return running;
}

LiveSet applied(const LiveSet& before, const ApplySet& apply, WallTime at, const std::string& who) {
  std::unordered_map<std::string_view, const std::shared_ptr<const LiveRule>*> old_rules;
  for (const auto& rule : before.rules) old_rules.emplace(rule->text.name, &rule);
  LiveSet set;
  for (const ApplySet::Rule& rule : apply.rules) {
    const auto old = old_rules.find(rule.text.name);
    if (old != old_rules.end() && (**old->second).text == rule.text &&
        (**old->second).until == rule.until) {
      set.rules.push_back(*old->second);
      continue;
    }
    put(set.rules, set.rules.end(),
        LiveRule{.text = rule.text,
                 .origin = RuleOrigin::administrator,
                 .by = who,
                 .since = at,
                 .until = rule.until});
  }
  for (const ApplySet::DeclaredShare& share : apply.shares) {
    const std::shared_ptr<const LiveShare> old = find_share(before, share.virtual_pfs);
    if (old && old->words == share.words && old->overrides == share.overrides && !old->until) {
      set.shares.push_back(old);
      continue;
    }
    put(set.shares, set.shares.end(),
        LiveShare{.virtual_pfs = share.virtual_pfs,
                  .overrides = share.overrides,
                  .words = share.words,
                  .by = who,
                  .since = at,
                  .until = std::nullopt});
  }
  return set;
}

LiveRule rule_of_job(const std::string& jobid, const std::vector<std::string>& words, WallTime at,
                     const std::string& who) {
  return {.text = {.name = std::string(kJobRulePrefix) + jobid,
                   .condition = condition_of_job(jobid),
                   .words = words},
          .origin = RuleOrigin::job,
          .by = who,
          .since = at,
          .until = std::nullopt};
}

std::optional<std::string> change(BookState& state, const BookOperation& operation) {
  const std::uint64_t before = state.version;
  Problem problem = std::visit(Changer(state, operation), operation.what);
  if (problem) return problem;
  ++state.number;
  if (operation.confirm_by && state.version != before) {
    state.pending = PendingConfirmation{.deadline = *operation.confirm_by, .version = before};
  }
  return std::nullopt;
}

}  // namespace vpfs::stage
