#include "stage/book/preparation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest_word.h"
#include "stage/book/record.h"
#include "stage/config/live_words.h"
#include "stage/config/rule_words.h"
#include "stage/config/share_config.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

constexpr auto kLongestTerm = std::chrono::hours(24 * 365 * 100);
// Records have times up to 2^33 seconds.
constexpr WallTime kLatest = WallTime(std::chrono::seconds(std::int64_t{1} << 33)) - kLongestTerm;

// The first; the others follow in its text.
BookProblem book_problem_of(const std::vector<RuleProblem>& problems) {
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

// The first word that is taken away although no rule can have it: a typing error.
std::optional<BookProblem> unknown_removal(const std::vector<std::string>& words,
                                           const Config& context) {
  for (const std::string& word : words) {
    const std::string_view key = word_key(word);
    if (!takes_away(word) || key == "for" || find_rule_word(key) != nullptr) continue;
    const std::vector<ShareWord> own = own_words(context);
    if (std::ranges::find(own, key, &ShareWord::name) != own.end()) continue;
    constexpr std::size_t kShown = 64;
    return invalid(std::string(key.substr(0, kShown)), "is not a word of a rule to take away");
  }
  return std::nullopt;
}

bool is_started_rule(const std::shared_ptr<const LiveRule>& rule) {
  return rule && rule->origin == RuleOrigin::administrator;
}

}  // namespace

BookPreparation::BookPreparation(const BookState& state, RuleParser parse, const Config& file,
                                 BookOperation operation, const RuleBook::Known& known)
    : state_(state),
      set_(administrators_of(state)),
      parse_(parse),
      file_(file),
      known_(known),
      change_{.operation = std::move(operation), .record = {}, .differences = {}, .warnings = {}},
      at_(change_.operation.at) {}

std::expected<Change, BookProblem> BookPreparation::run() {
  if (at_ < WallTime() || at_ > kLatest) {
    return std::unexpected(
        problem(ProblemCode::unavailable, "", "the clock of this host is wrong by many years"));
  }
  if (Problem found = confirmation_problem()) return std::unexpected(std::move(*found));
  if (Problem found =
          std::visit([this](const auto& what) { return check(what); }, change_.operation.what)) {
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
  const bool looks_back = std::holds_alternative<Rollback>(change_.operation.what) ||
                          std::holds_alternative<Expire>(change_.operation.what);
  if (looks_back) trial.history = state_.history;
  trial.pending = state_.pending;
  const std::optional<std::string> failed = change(trial, change_.operation);
  VPFS_ASSERT(!failed);
  change_.differences = differences(set_, administrators_of(trial));
}

BookPreparation::Problem BookPreparation::waits_for_confirmation() const {
  if (!state_.pending) return std::nullopt;
  return problem(ProblemCode::unavailable, "",
                 fmt::format("the applied set waits for its confirmation until {:%F %T} UTC: "
                             "confirm it or roll back first",
                             state_.pending->deadline));
}

// Only the administrators' set has versions that can come back.
BookPreparation::Problem BookPreparation::confirmation_problem() const {
  const BookOperation& operation = change_.operation;
  if (!operation.confirm_by) return std::nullopt;
  if (Problem found = time_problem(operation.confirm_by, "confirm")) return found;
  if (std::holds_alternative<ApplySet>(operation.what)) return std::nullopt;
  std::string name;
  if (const auto* const start = std::get_if<StartRule>(&operation.what)) {
    if (start->origin == RuleOrigin::administrator) return std::nullopt;
  } else if (const auto* const change = std::get_if<ChangeRule>(&operation.what)) {
    name = change->name;
  } else if (const auto* const stop = std::get_if<StopRule>(&operation.what)) {
    name = stop->name;
  }
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, name);
  if (!name.empty() && (!rule || is_started_rule(rule))) return std::nullopt;
  return invalid("confirm", "only changes of administrators' rules can wait for a confirmation");
}

BookPreparation::Problem BookPreparation::time_problem(const std::optional<WallTime>& until,
                                                       std::string_view place) const {
  if (!until) return std::nullopt;
  if (*until <= at_) return invalid(std::string(place), "its time would be over already");
  if (*until > at_ + kLongestTerm)
    return invalid(std::string(place), "lasts for 100 years at most");
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
  const ParsedRule* parsed = known_.read == nullptr ? nullptr : known_.read->find(rule);
  std::optional<ParsedRule> fresh;
  if (parsed == nullptr) {
    auto made = parse_(rule, context);
    if (!made) return std::unexpected(book_problem_of(made.error()));
    parsed = &fresh.emplace(std::move(*made));
    if (known_.read != nullptr) known_.read->add(rule, *fresh);
  }
  ReadRule read = {.text = parsed->rule.text, .until = std::nullopt};
  erase_words(read.text.words, "for");
  if (parsed->lasts) {
    if (*parsed->lasts > kLongestTerm) {
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

BookPreparation::Problem BookPreparation::is_of_site(const LiveRule& rule) {
  if (rule.origin != RuleOrigin::coordinator) return std::nullopt;
  return invalid("NAME", fmt::format("'{}' is the coordinator's: change it there "
                                     "(vpfsctl --coordinator ADDRESS)",
                                     rule.text.name));
}

BookPreparation::Problem BookPreparation::is_needed(std::string_view name) {
  const auto sends = [&](const std::shared_ptr<const LiveRule>& rule) {
    return rule && rule->text.name != name && value_of(rule->text.words, "vpfs") == name;
  };
  const auto refused = [&](const LiveRule& rule) {
    return invalid("NAME", fmt::format("the rule '{}' sends to it (vpfs={}): stop that one first",
                                       rule.text.name, name));
  };
  const auto found = std::ranges::find_if(set_.rules, sends);
  if (found != set_.rules.end()) return refused(**found);
  for (const auto& [id, job] : state_.jobs) {
    if (sends(job.rule)) return refused(*job.rule);
  }
  for (const auto& rule : state_.coordinators) {
    if (!sends(rule)) continue;
    change_.warnings.push_back(fmt::format(
        "the coordinator's rule '{}' sends to it (vpfs={}), and is not in force without it",
        rule->text.name, name));
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
  if (const auto there = find_rule(state_, start.rule.name)) {
    if (Problem taken = is_of_site(*there)) {
      taken->code = ProblemCode::exists;
      return taken;
    }
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
  const bool promises = may_promise(start.rule);
  if (start.origin == RuleOrigin::administrator) {
    // It goes first, and the others stay as they are: no trial is needed.
    const LiveRule made = {.text = start.rule, .until = start.until};
    change_.differences.push_back({.name = start.rule.name,
                                   .kind = Difference::Kind::added,
                                   .before = "",
                                   .after = line_of(made)});
  }
  change_.operation.what = std::move(start);
  return promises ? promise_problem() : std::nullopt;
}

BookPreparation::Problem BookPreparation::check(ChangeRule change) {
  const std::optional<std::string_view> lasts = value_of(change.words, "for");
  const bool for_ever = lasts && (lasts->empty() || *lasts == "none");
  if (change.words.empty() && !change.until) return invalid("", "no word to change is given");
  if (Problem found = unknown_removal(change.words, file_)) return found;
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, change.name);
  if (!rule) return change_share(change.name, change);
  if (Problem found = is_of_site(*rule)) return found;
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
  return may_promise(text) ? promise_problem() : std::nullopt;
}

// The share of a virtual PFS that is the file's, or that an applied set declares.
BookPreparation::Problem BookPreparation::change_share(const std::string& name,
                                                       const ChangeRule& change) {
  if (file_.is_site && name == "default") {
    return invalid("NAME", "each stage has a share of its own for `default`: change it there");
  }
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
  if (!share) return book_problem_of(share.error());
  if (made.until) {
    if (Problem found = time_problem(*made.until, "for")) return found;
  }
  if (made.virtual_pfs != name) {
    change_.warnings.push_back(fmt::format(
        "the rule '{}' sends to the virtual PFS '{}', as others may: its share is changed", name,
        made.virtual_pfs));
  }
  const Share& becomes = share->share.share;
  const bool promises = becomes.latency > Duration::zero() || becomes.finish_bytes.count > 0;
  change_.operation.what = std::move(made);
  find_differences();
  return promises ? promise_problem() : std::nullopt;
}

BookPreparation::Problem BookPreparation::check(const ChangeShare& change) {
  return change_share(change.virtual_pfs,
                      {.name = change.virtual_pfs, .words = change.words, .until = change.until});
}

BookPreparation::Problem BookPreparation::check(const StopRule& stop) {
  const std::shared_ptr<const LiveRule> rule = find_rule(state_, stop.name);
  if (!rule) return check(StopShare{.virtual_pfs = stop.name});
  if (Problem found = is_of_site(*rule)) return found;
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

std::expected<Change, BookProblem> RuleBook::prepare(BookOperation operation, const Config& file,
                                                     const Known& known) const {
  return BookPreparation(state_, parse_, file, std::move(operation), known).run();
}

}  // namespace vpfs::stage
