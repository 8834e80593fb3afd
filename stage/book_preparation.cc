#include "stage/book_preparation.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest_word.h"
#include "stage/address.h"
#include "stage/book_record.h"
#include "stage/job_registry.h"
#include "stage/live_words.h"
#include "stage/template_name.h"

namespace vpfs::stage {
namespace {

constexpr auto kLongest = std::chrono::hours(24 * 365 * 100);

BookProblem problem(ProblemCode code, std::string place, std::string text) {
  return {.code = code, .place = std::move(place), .text = std::move(text)};
}
BookProblem invalid(std::string place, std::string text) {
  return problem(ProblemCode::invalid, std::move(place), std::move(text));
}

// The first; the others follow in its text.
BookProblem joined(const std::vector<RuleProblem>& problems) {
  BookProblem all;
  for (const RuleProblem& each : problems) {
    if (all.text.empty()) {
      all = invalid(each.place, each.text);
    } else {
      all.text += fmt::format("; {}: {}", each.place, each.text);
    }
  }
  return all;
}

bool is_started_rule(const std::shared_ptr<const LiveRule>& rule) {
  return rule && rule->origin == RuleOrigin::administrator;
}

}  // namespace

BookPreparation::BookPreparation(const BookState& state, RuleParser parse, const Config& file,
                                 BookOperation operation)
    : state_(state),
      set_(administrators_of(state)),
      parse_(parse),
      file_(file),
      change_{.operation = std::move(operation), .record = {}, .differences = {}, .warnings = {}},
      at_(change_.operation.at) {}

std::expected<Change, BookProblem> BookPreparation::run() {
  if (Problem found = std::visit([this](auto what) { return check(std::move(what)); },
                                 change_.operation.what)) {
    return std::unexpected(std::move(*found));
  }
  std::optional<std::string> record = to_record(change_.operation, state_.number + 1);
  if (!record) return std::unexpected(invalid("", "a text is not UTF-8"));
  change_.record = std::move(*record);
  return std::move(change_);
}

// Carries the operation out on a copy without jobs, which the set does not depend on.
void BookPreparation::find_differences() {
  BookState trial;
  trial.version = state_.version;
  trial.administrators = state_.administrators;
  trial.history = state_.history;
  trial.pending = state_.pending;
  const std::optional<std::string> failed = change(trial, change_.operation);
  VPFS_ASSERT(!failed);
  change_.differences = differences(set_, administrators_of(trial));
}

BookPreparation::Problem BookPreparation::waits_for_confirmation() const {
  if (!state_.pending) return std::nullopt;
  return problem(ProblemCode::unavailable, "",
                 fmt::format("version {} waits for its confirmation until {:%F %T} UTC: confirm it "
                             "or roll back first",
                             state_.version, state_.pending->deadline));
}

BookPreparation::Problem BookPreparation::time_problem(const std::optional<WallTime>& until,
                                                       std::string_view place) const {
  if (!until) return std::nullopt;
  if (*until <= at_) return invalid(std::string(place), "its time would be over already");
  if (*until > at_ + kLongest) return invalid(std::string(place), "lasts for 100 years at most");
  return std::nullopt;
}

const VirtualPfsConfig* BookPreparation::declared_by_file(std::string_view name) const {
  const auto found = std::ranges::find(file_.virtual_pfs, name, &VirtualPfsConfig::name);
  return found == file_.virtual_pfs.end() ? nullptr : &*found;
}

bool BookPreparation::is_live_target(std::string_view name) const {
  if (name.starts_with(kJobRulePrefix)) return false;
  const std::shared_ptr<const LiveShare> share = find_share(set_, name);
  if (share && !share->overrides) return true;
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, name);
  return rule && !value_of(rule->text.words, "vpfs");
}

const Config& BookPreparation::context_for(const std::vector<std::string>& words) {
  const std::optional<std::string_view> target = value_of(words, "vpfs");
  if (!target || declared_by_file(*target) != nullptr || !is_live_target(*target)) return file_;
  context_ = file_;
  context_.virtual_pfs.push_back({.name = std::string(*target)});
  return context_;
}

std::expected<BookPreparation::ReadRule, BookProblem> BookPreparation::read(
    const RuleText& rule, const Config& context) const {
  auto parsed = parse_(rule, context);
  if (!parsed) return std::unexpected(joined(parsed.error()));
  ReadRule read = {.text = std::move(parsed->rule.text), .until = std::nullopt};
  erase_words(read.text.words, "for");
  if (parsed->lasts) {
    if (*parsed->lasts > kLongest) {
      return std::unexpected(invalid("for", "lasts for 100 years at most"));
    }
    read.until = at_ + std::chrono::ceil<std::chrono::seconds>(*parsed->lasts);
    if (Problem found = time_problem(read.until, "for")) return std::unexpected(std::move(*found));
  }
  return read;
}

BookPreparation::Problem BookPreparation::name_problem(const RuleText& rule,
                                                       RuleOrigin origin) const {
  const std::string& name = rule.name;
  if (!is_good_name(name)) {
    return invalid("NAME", fmt::format("must be 1 to {} bytes of printable ASCII", kLongestName));
  }
  if (name == "default") {
    return problem(ProblemCode::exists, "NAME", "`default` is always there, and always last");
  }
  if (origin != RuleOrigin::job && name.starts_with(kJobRulePrefix)) {
    return invalid("NAME", "names that begin with `job:` are for the rules of jobs");
  }
  if (std::ranges::find(file_.rules, name, &RuleConfig::name) != file_.rules.end()) {
    return problem(ProblemCode::exists, "NAME",
                   fmt::format("the configuration file has a rule '{}' already", name));
  }
  if (value_of(rule.words, "vpfs")) return std::nullopt;
  if (declared_by_file(name) != nullptr) {
    return problem(ProblemCode::exists, "NAME",
                   fmt::format("the configuration file declares a virtual PFS '{0}' already; "
                               "vpfs={0} sends to it",
                               name));
  }
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::is_needed(std::string_view name) const {
  const auto sends = [&](const std::shared_ptr<const LiveRule>& rule) {
    return rule && rule->text.name != name && value_of(rule->text.words, "vpfs") == name;
  };
  const auto refused = [&](const LiveRule& rule) {
    return invalid("NAME", fmt::format("the rule '{}' sends to it (vpfs={}): stop that one first",
                                       rule.text.name, name));
  };
  for (const auto* const rules : {&set_.rules, &state_.coordinators}) {
    const auto found = std::ranges::find_if(*rules, sends);
    if (found != rules->end()) return refused(**found);
  }
  for (const auto& [id, job] : state_.jobs) {
    if (sends(job.rule)) return refused(*job.rule);
  }
  return std::nullopt;
}

BookProblem BookPreparation::unknown(const std::string& name) const {
  std::vector<std::string> known = {"default"};
  for (const auto& rule : set_.rules) known.push_back(rule->text.name);
  for (const auto& rule : state_.coordinators) known.push_back(rule->text.name);
  for (const auto& [id, job] : state_.jobs) {
    if (job.rule) known.push_back(job.rule->text.name);
  }
  for (const RuleConfig& rule : file_.rules) known.push_back(rule.name);
  for (const VirtualPfsConfig& each : file_.virtual_pfs) known.push_back(each.name);
  std::string text = fmt::format("there is no rule '{}'", name);
  if (const auto nearest = nearest_word(name, known)) {
    text += fmt::format("; did you mean '{}'?", *nearest);
  }
  return problem(ProblemCode::not_found, "NAME", std::move(text));
}

std::optional<std::string> BookPreparation::file_share(const std::string& name) const {
  const auto rule = std::ranges::find(file_.rules, name, &RuleConfig::name);
  if (rule != file_.rules.end()) return rule->virtual_pfs;
  if (name == "default" || declared_by_file(name) != nullptr) return name;
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(StartRule start) {
  if (Problem found = name_problem(start.rule, start.origin)) return found;
  if (find_rule(state_, start.rule.name)) {
    return problem(ProblemCode::exists, "NAME",
                   fmt::format("there is a rule '{0}' already; `rule change {0}` changes it",
                               start.rule.name));
  }
  if (!value_of(start.rule.words, "vpfs") && is_live_target(start.rule.name)) {
    return problem(
        ProblemCode::exists, "NAME",
        fmt::format("there is a virtual PFS '{0}' already; vpfs={0} sends to it", start.rule.name));
  }
  if (start.origin == RuleOrigin::administrator) {
    if (Problem found = waits_for_confirmation()) return found;
    if (set_.rules.size() >= RuleBook::kMostRules) {
      return problem(ProblemCode::unavailable, "",
                     fmt::format("there are {} live rules already", set_.rules.size()));
    }
  }
  auto rule = read(start.rule, context_for(start.rule.words));
  if (!rule) return std::move(rule.error());
  start.rule = std::move(rule->text);
  if (rule->until) start.until = rule->until;
  if (Problem found = time_problem(start.until, "for")) return found;
  change_.operation.what = std::move(start);
  find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(ChangeRule change) {
  const std::optional<std::string_view> lasts = value_of(change.words, "for");
  const bool for_ever = lasts && (lasts->empty() || *lasts == "none");
  if (change.words.empty() && !change.until) return invalid("", "no word to change is given");
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, change.name);
  if (!rule) return change_share(change.name, change);
  if (is_started_rule(rule)) {
    if (Problem found = waits_for_confirmation()) return found;
  }
  RuleText text = rule->text;
  text.words = with_changes(std::move(text.words), change.words);
  if (value_of(text.words, "vpfs") && !value_of(rule->text.words, "vpfs")) {
    if (Problem found = is_needed(change.name)) return found;
  }
  auto changed = read(text, context_for(text.words));
  if (!changed) return std::move(changed.error());
  erase_words(change.words, "for");
  change.becomes = std::move(changed->text.words);
  if (changed->until) change.until = changed->until;
  if (for_ever) change.until = std::optional<WallTime>();
  if (change.until) {
    if (Problem found = time_problem(*change.until, "for")) return found;
  }
  change_.operation.what = std::move(change);
  if (is_started_rule(rule)) find_differences();
  return std::nullopt;
}

// The share of a virtual PFS that is the file's, or that an applied set declares.
BookPreparation::Problem BookPreparation::change_share(const std::string& name,
                                                       const ChangeRule& change) {
  ChangeShare made = {.virtual_pfs = name, .words = change.words, .until = change.until};
  VirtualPfsConfig base = {.name = name, .share = {}};
  const std::shared_ptr<const LiveShare> declared = find_share(set_, name);
  if (declared && !declared->overrides) {
    made.overrides = false;
  } else if (const std::optional<std::string> target = file_share(name)) {
    made.virtual_pfs = *target;
    if (const VirtualPfsConfig* const share = declared_by_file(*target)) base = *share;
  } else {
    return unknown(name);
  }
  if (Problem found = waits_for_confirmation()) return found;
  const std::optional<std::string_view> lasts = value_of(made.words, "for");
  if (lasts && !lasts->empty() && *lasts != "none") {
    // As of a share with this word alone.
    auto timed =
        read({.name = "default", .condition = "", .words = {fmt::format("for={}", *lasts)}}, file_);
    if (!timed) return std::move(timed.error());
    made.until = timed->until;
  } else if (lasts) {
    made.until = std::optional<WallTime>();
  }
  erase_words(made.words, "for");
  const std::shared_ptr<const LiveShare> before = find_share(set_, made.virtual_pfs);
  if (!before) {
    made.becomes = made.words;
  } else if (made.overrides) {
    made.becomes = joined_changes(before->words, made.words);
  } else {
    made.becomes = with_changes(before->words, made.words);
  }
  const auto share = changed_share(base, declaring_rule(file_, made.virtual_pfs), made.becomes,
                                   without(file_, made.virtual_pfs), parse_);
  if (!share) return joined(share.error());
  if (made.until) {
    if (Problem found = time_problem(*made.until, "for")) return found;
  }
  if (made.virtual_pfs != name) {
    change_.warnings.push_back(fmt::format(
        "the rule '{}' sends to the virtual PFS '{}', as others may: its share is changed", name,
        made.virtual_pfs));
  }
  change_.operation.what = std::move(made);
  find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const ChangeShare& change) {
  return change_share(change.virtual_pfs,
                      {.name = change.virtual_pfs, .words = change.words, .until = change.until});
}

BookPreparation::Problem BookPreparation::check(const StopRule& stop) {
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, stop.name);
  if (!rule) return check(StopShare{.virtual_pfs = stop.name});
  if (is_started_rule(rule)) {
    if (Problem found = waits_for_confirmation()) return found;
  }
  if (Problem found = is_needed(stop.name)) return found;
  if (is_started_rule(rule)) find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const StopShare& stop) {
  const std::optional<std::string> target = file_share(stop.virtual_pfs);
  const std::shared_ptr<const LiveShare> share =
      find_share(set_, target ? *target : stop.virtual_pfs);
  if (!share && stop.virtual_pfs == "default") {
    return invalid("NAME", "`default` is always there: it cannot be stopped");
  }
  if (!share && target) {
    return invalid("NAME", fmt::format("'{}' is the configuration file's: edit the file and reload",
                                       stop.virtual_pfs));
  }
  if (!share) return unknown(stop.virtual_pfs);
  if (Problem found = waits_for_confirmation()) return found;
  if (!share->overrides) {
    if (Problem found = is_needed(share->virtual_pfs)) return found;
  }
  change_.operation.what = StopShare{.virtual_pfs = share->virtual_pfs};
  find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::set_problem(const LiveSet& set) const {
  Composer composer(parse_);
  const Composer::Composed before = composer.compose(file_, state_);
  const Composer::Composed after = composer.compose(file_, set, state_);
  std::unordered_set<std::string_view> known;
  for (const Suspended& each : before.suspended) known.insert(each.name);
  for (const Suspended& each : after.suspended) {
    if (each.origin == RuleOrigin::administrator || !known.contains(each.name)) {
      return invalid(fmt::format("{}.{}", each.name, each.place), each.text);
    }
  }
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(ApplySet apply) {
  if (Problem found = waits_for_confirmation()) return found;
  if (Problem found = time_problem(apply.confirm_by, "confirm")) return found;
  if (apply.rules.size() > RuleBook::kMostRules) {
    return invalid("", fmt::format("more than {} rules", RuleBook::kMostRules));
  }
  // Rules that declare a virtual PFS may come after those that send to it.
  Config declaring = file_;
  declaring.rules.clear();
  std::set<std::string_view> names;
  std::set<std::string_view> shares;
  const auto twice = [](const std::string& name) {
    return invalid("NAME", fmt::format("'{}' is given twice", name));
  };
  for (ApplySet::DeclaredShare& share : apply.shares) {
    if (!shares.insert(share.virtual_pfs).second) return twice(share.virtual_pfs);
    if (!is_good_name(share.virtual_pfs)) {
      return invalid("NAME", "a virtual PFS has 1 to 128 bytes of printable ASCII as its name");
    }
    if (auto braces = template_problem(share.virtual_pfs)) return invalid("NAME", *braces);
    share.overrides =
        share.virtual_pfs == "default" || declared_by_file(share.virtual_pfs) != nullptr;
    if (!share.overrides) declaring.virtual_pfs.push_back({.name = share.virtual_pfs});
  }
  Config sending = declaring;
  for (const ApplySet::Rule& rule : apply.rules) {
    if (!names.insert(rule.text.name).second) return twice(rule.text.name);
    if (Problem found = name_problem(rule.text, RuleOrigin::administrator)) return found;
    if (!value_of(rule.text.words, "vpfs")) sending.virtual_pfs.push_back({.name = rule.text.name});
  }
  for (const auto& rule : state_.coordinators) {
    if (names.contains(rule->text.name)) return twice(rule->text.name);
    if (!value_of(rule->text.words, "vpfs"))
      sending.virtual_pfs.push_back({.name = rule->text.name});
  }
  for (ApplySet::Rule& rule : apply.rules) {
    auto made = read(rule.text, value_of(rule.text.words, "vpfs") ? sending : declaring);
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
    if (rule->until && *rule->until <= at_) {
      change_.warnings.push_back(
          fmt::format("the rule '{}' does not come back: its time is over", rule->text.name));
    }
  }
  find_differences();
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(StartJob start) {
  for (std::string& client : start.job.clients) {
    if (AddressBlock::parse(client)) continue;
    if (file_.names == nullptr || file_.names->addresses(client).empty()) {
      return invalid("clients", fmt::format("'{}' is no IP address or CIDR block, and no host "
                                            "of this name is known",
                                            client));
    }
  }
  std::vector<std::string> addresses;
  for (const std::string& client : start.job.clients) {
    if (AddressBlock::parse(client)) {
      addresses.push_back(client);
    } else {
      for (std::string& each : file_.names->addresses(client)) addresses.push_back(std::move(each));
    }
  }
  start.job.clients = std::move(addresses);
  if (const Result<void> added = JobRegistry().add(start.job); !added) {
    return invalid("", added.error().message);
  }
  if (Problem found = time_problem(start.until, "time_limit")) return found;
  const bool known = state_.jobs.contains(start.job.jobid);
  if (!known && state_.jobs.size() >= RuleBook::kMostJobs) {
    return problem(ProblemCode::unavailable, "",
                   fmt::format("{} jobs are registered already", state_.jobs.size()));
  }
  if (!start.words.empty()) {
    LiveRule rule = rule_of_job(start.job.jobid, start.words, at_, change_.operation.who);
    if (Problem found = name_problem(rule.text, RuleOrigin::job)) return found;
    if (start.job.jobid.find_first_of("{}") != std::string::npos) {
      return invalid("JOBID", "a job id with braces cannot have a rule");
    }
    if (value_of(start.words, "for")) {
      return invalid("for", "the rule of a job ends with the job, or at its time limit");
    }
    auto made = read(rule.text, context_for(rule.text.words));
    if (!made) return std::move(made.error());
    start.words = std::move(made->text.words);
  }
  change_.operation.what = std::move(start);
  return std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const StopJob& stop) {
  if (state_.jobs.contains(stop.jobid)) return std::nullopt;
  return problem(ProblemCode::not_found, "JOBID",
                 fmt::format("the job '{}' is not registered", stop.jobid));
}

BookPreparation::Problem BookPreparation::check(const SetBypass& bypass) {
  if (!bypass.on && bypass.until) return invalid("for", "`bypass off` has no end");
  return time_problem(bypass.until, "for");
}

BookPreparation::Problem BookPreparation::check(const Expire&) {
  find_differences();
  note_ends();
  return std::nullopt;
}

void BookPreparation::note_ends() {
  const auto is_over = [&](const std::optional<WallTime>& until) { return until && *until <= at_; };
  const auto note = [&](std::string text) { change_.warnings.push_back(std::move(text)); };
  if (state_.pending && is_over(state_.pending->deadline)) {
    note(fmt::format("version {} was not confirmed: back to version {}", state_.version,
                     state_.pending->version));
  }
  for (const auto& rule : set_.rules) {
    if (is_over(rule->until)) note(fmt::format("the rule '{}' has ended", rule->text.name));
  }
  for (const auto& share : set_.shares) {
    if (is_over(share->until)) {
      note(fmt::format("the share of '{}' is as before again", share->virtual_pfs));
    }
  }
  for (const auto& rule : state_.coordinators) {
    if (is_over(rule->until)) note(fmt::format("the rule '{}' has ended", rule->text.name));
  }
  for (const auto& [id, job] : state_.jobs) {
    if (is_over(job.until)) {
      note(fmt::format("the job '{}' has reached its time limit", id));
    } else if (job.rule && is_over(job.rule->until)) {
      note(fmt::format("the rule '{}' has ended", job.rule->text.name));
    }
  }
  if (is_over(state_.bypass.until)) note("bypass is off again");
}

std::expected<Change, BookProblem> RuleBook::prepare(BookOperation operation,
                                                     const Config& file) const {
  return BookPreparation(state_, parse_, file, std::move(operation)).run();
}

}  // namespace vpfs::stage
