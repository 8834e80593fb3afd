#include "control/admin/rule_administration.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "base/config_reader.h"
#include "base/joined.h"
#include "base/log/log.h"
#include "base/one_line.h"
#include "base/result.h"
#include "control/admin/job_replies.h"
#include "control/admin/rule_states.h"
#include "control/admin/time_after.h"
#include "control/wire/protocol.h"
#include "stage/book/rule_set_file.h"
#include "stage/config/rule_text.h"
#include "stage/rules/client_list.h"
#include "stage/rules/rule_checks.h"

namespace vpfs::control {
namespace {

std::vector<std::string> words_of(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return {words.begin(), words.end()};
}

bool has_word(const std::vector<std::string>& words, std::string_view key) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return word.starts_with(key) && word.substr(key.size()).starts_with('=');
  });
}

// What the log says of a change belongs to.
struct FindSubject {
  LogSubject operator()(const stage::StartRule& start) const { return {.rule = start.rule.name}; }
  LogSubject operator()(const stage::ChangeRule& change) const { return {.rule = change.name}; }
  LogSubject operator()(const stage::StopRule& stop) const { return {.rule = stop.name}; }
  LogSubject operator()(const stage::StartJob& start) const { return {.job = start.job.jobid}; }
  LogSubject operator()(const stage::StopJob& stop) const { return {.job = stop.jobid}; }
  LogSubject operator()(const auto& /*many*/) const { return {}; }
};

// What a change does, and what it warns of.
RuleReply to_reply(const stage::Change& change) {
  RuleReply reply;
  for (const auto& each : change.differences) *reply.add_differences() = to_message(each);
  for (const std::string& each : change.warnings) reply.add_warnings(each);
  return reply;
}

std::string done_text(const Rule& request, const stage::Change& change, std::uint64_t version) {
  std::string text;
  switch (request.action()) {
    case Rule::START:
      text = fmt::format("rule {} started", request.name());
      break;
    case Rule::CHANGE:
      text = fmt::format("rule {} changed", request.name());
      break;
    case Rule::STOP:
      text = fmt::format("rule {} stopped", request.name());
      break;
    case Rule::APPLY:
      text = fmt::format("{} differences applied", change.differences.size());
      break;
    case Rule::CONFIRM:
      text = "confirmed";
      break;
    case Rule::ROLLBACK:
      text = fmt::format("rolled back to version {}", request.version());
      break;
    default:
      break;
  }
  text += fmt::format("; this is version {}", version);
  const std::vector<std::string> words = words_of(request.words());
  if (has_word(words, "rate") || has_word(words, "iops") || has_word(words, "operations")) {
    text += "; rate and iops count for each data server";
  }
  return text;
}

}  // namespace

RuleAdministration::Outcome<RuleReply> RuleAdministration::rule(const Rule& request,
                                                                const Caller& caller,
                                                                ReadRequest& read) {
  switch (request.action()) {
    case Rule::LIST:
      return list_rules({});
    case Rule::HISTORY:
      return history();
    case Rule::START:
    case Rule::CHANGE:
    case Rule::STOP:
    case Rule::APPLY:
    case Rule::CONFIRM:
    case Rule::ROLLBACK:
      return change_rules(request, caller, read);
    default:
      return std::unexpected(
          make_error(Error::UNSUPPORTED, "action", "this version does not know the action"));
  }
}

RuleReply RuleAdministration::list_rules(const std::vector<StageSnapshot::Rule>& counted) const {
  RuleReply reply;
  add_rules(*reply.mutable_rules(), live_, counted);
  const stage::BookState& state = live_.book().state();
  reply.set_version(state.version);
  if (state.pending) reply.set_confirm_by_at(state.pending->deadline.time_since_epoch().count());
  return reply;
}

RuleReply RuleAdministration::history() const {
  const stage::RuleBook& book = live_.book();
  RuleReply reply;
  reply.set_version(book.state().version);
  for (const stage::HistoryEntry& each : book.history()) {
    HistoryEntry& entry = *reply.add_history();
    entry.set_version(each.version);
    entry.set_at(each.at.time_since_epoch().count());
    entry.set_who(each.who);
    entry.set_command(each.command);
    for (const stage::Difference& difference : book.differences_of(each.version)) {
      *entry.add_differences() = to_message(difference);
    }
  }
  return reply;
}

bool RuleAdministration::tick() {
  if (!live_.expire(now_())) return false;
  changed_ = true;
  return true;
}

RuleAdministration::Outcome<stage::Change> RuleAdministration::carry_out(
    stage::BookOperation operation) {
  (void)tick();
  auto change = live_.prepare(std::move(operation));
  if (!change) return change;
  VPFS_TRY(carry_out(*change));
  return change;
}

RuleAdministration::Outcome<void> RuleAdministration::carry_out(const stage::Change& change,
                                                                const stage::ParsedRules* read) {
  if (auto done = live_.carry_out(change, read); !done) return done;
  note(change.operation);
  return {};
}

void RuleAdministration::note(const stage::BookOperation& carried_out) {
  log_about(std::visit(FindSubject(), carried_out.what), spdlog::level::info,
            one_line(fmt::format("{}: {}", carried_out.who, stage::command_of(carried_out))));
  changed_ = true;
}

bool RuleAdministration::changes_book(const Envelope& request) {
  if (request.has_job()) return request.job().action() != Job::LIST;
  if (!request.has_rule() || request.rule().dry_run()) return false;
  switch (request.rule().action()) {
    case Rule::START:
    case Rule::CHANGE:
    case Rule::STOP:
    case Rule::APPLY:
    case Rule::CONFIRM:
    case Rule::ROLLBACK:
      return true;
    default:
      return false;
  }
}

RuleAdministration::Outcome<stage::Change> RuleAdministration::prepare(const Envelope& request,
                                                                       const Caller& caller,
                                                                       ReadRequest& read) const {
  if (request.has_rule()) return prepared(request.rule(), caller, read);
  auto operation = operation_of(request.job(), caller);
  VPFS_TRY(operation);
  return live_.prepare(std::move(*operation));
}

Envelope RuleAdministration::commit(const Envelope& request, const stage::Change& change,
                                    const ReadRequest& read) {
  const bool was_known = request.has_job() && knows_job(request.job());
  live_.commit(change.operation, &read.rules);
  note(change.operation);
  Envelope reply;
  if (request.has_rule()) {
    *reply.mutable_rule_reply() = reply_of(request.rule(), change);
  } else {
    *reply.mutable_job_reply() = reply_of(request.job(), change, was_known);
  }
  return reply;
}

void RuleAdministration::commit(const stage::BookOperation& due) {
  live_.commit(due);
  changed_ = true;
}

RuleAdministration::Outcome<stage::BookOperation> RuleAdministration::operation_of(
    const Rule& request, const Caller& caller, stage::ParsedRules& read) const {
  const WallTime now = now_();
  stage::BookOperation operation = {.at = now, .who = caller.name, .what = stage::Confirm{}};
  const std::vector<std::string> words = words_of(request.words());
  operation.confirm_by = time_after(now, request.confirm_seconds());
  switch (request.action()) {
    case Rule::START:
      operation.what = stage::StartRule{
          .rule = {.name = request.name(), .condition = request.condition(), .words = words}};
      break;
    case Rule::CHANGE:
      operation.what = stage::ChangeRule{.name = request.name(), .words = words};
      break;
    case Rule::STOP:
      operation.what = stage::StopRule{.name = request.name()};
      break;
    case Rule::APPLY: {
      ConfigErrors errors(request.file_name().empty() ? "the file" : request.file_name());
      stage::ApplySet set = stage::read_rule_set(request.file(), live_.file(), live_.book().state(),
                                                 stage::parse_rule, errors, &read);
      if (!errors.empty()) {
        const std::string all = joined(errors.lines(), "; ");
        return std::unexpected(make_error(Error::INVALID, "", all));
      }
      operation.what = std::move(set);
      break;
    }
    case Rule::ROLLBACK:
      operation.what = stage::Rollback{.version = request.version()};
      break;
    default:
      break;
  }
  return operation;
}

RuleAdministration::Outcome<stage::Change> RuleAdministration::prepare_rule(
    const Rule& request, const Caller& caller, stage::ParsedRules& read) const {
  auto operation = operation_of(request, caller, read);
  VPFS_TRY(operation);
  return live_.prepare(std::move(*operation), &read);
}

WantedNames RuleAdministration::names_of(const Envelope& request, const Caller& caller,
                                         ReadRequest& read) const {
  if (live_.file().names == nullptr) return {};
  const NotedNames noted(names_);
  if (request.has_job() && request.job().action() == Job::START) {
    (void)read_job(request.job(), &names_);
    return noted.answers().names();
  }
  if (request.has_rule()) {
    const Rule::Action action = request.rule().action();
    if (action != Rule::START && action != Rule::CHANGE && action != Rule::APPLY &&
        action != Rule::ROLLBACK) {
      return {};
    }
    ReadRequest seen;
    auto change = prepare_rule(request.rule(), caller, seen.rules);
    const bool is_file = action == Rule::APPLY || action == Rule::ROLLBACK;
    const WantedNames wanted = is_file ? noted.wanted() : noted.answers().names();
    if (!wanted.empty()) return wanted;
    if (change) {
      seen.change = std::move(*change);
    } else {
      seen.mistake = std::move(change.error());
    }
    read = std::move(seen);
  }
  return noted.wanted();
}

RuleAdministration::Outcome<stage::Change> RuleAdministration::prepared(const Rule& request,
                                                                        const Caller& caller,
                                                                        ReadRequest& read) const {
  if (read.mistake) return std::unexpected(*std::exchange(read.mistake, std::nullopt));
  if (read.change) return *std::exchange(read.change, std::nullopt);
  return prepare_rule(request, caller, read.rules);
}

RuleAdministration::Outcome<RuleReply> RuleAdministration::change_rules(const Rule& request,
                                                                        const Caller& caller,
                                                                        ReadRequest& read) {
  if (tick()) read = {};
  const Outcome<stage::Change> change = prepared(request, caller, read);
  VPFS_TRY(change);
  if (request.dry_run()) return dry_reply(*change);
  VPFS_TRY(carry_out(*change, &read.rules));
  return reply_of(request, *change);
}

RuleReply RuleAdministration::dry_reply(const stage::Change& change) const {
  RuleReply reply = to_reply(change);
  reply.set_version(live_.book().state().version);
  reply.set_text(change.differences.empty() ? "nothing would change"
                                            : "nothing was changed: this is a dry run");
  return reply;
}

RuleReply RuleAdministration::reply_of(const Rule& request, const stage::Change& change) const {
  RuleReply reply = to_reply(change);
  const stage::BookState& state = live_.book().state();
  reply.set_version(state.version);
  reply.set_text(done_text(request, change, state.version));
  if (state.pending) reply.set_confirm_by_at(state.pending->deadline.time_since_epoch().count());
  warn_of_hidden(reply, request.name());
  if (request.action() == Rule::START) warn_of_unsure_user(reply, request.name());
  return reply;
}

// Where requests show the owner of a file too, the user is that of the process that sends, and a
// client's page cache sends as uid 0 (docs/wire-beegfs.md, section 6).
void RuleAdministration::warn_of_unsure_user(RuleReply& reply, const std::string& name) const {
  const stage::Config& config = live_.composed().config;
  if (!config.shown.has(Attribute::uid) || !config.shown.has(Attribute::owner)) return;
  const auto rule = std::ranges::find(config.rules, name, &stage::RuleConfig::name);
  if (rule == config.rules.end()) return;
  const auto by_user_alone = [](const stage::Conditions& each) {
    return !each.uids.empty() && each.owners.empty() && each.directories.empty();
  };
  if (!std::ranges::any_of(rule->any_of, by_user_alone)) return;
  reply.add_warnings(fmt::format(
      "rule {}: a client with native caching sends reads and writes of less than 512 KiB as uid 0, "
      "so they go to `default`; a rule by owner= holds them (a directory of its own for each user)",
      name));
}

// Warns of rules that never apply: the rule of this name, and those that it hides; of all rules
// without a name.
void RuleAdministration::warn_of_hidden(RuleReply& reply, const std::string& name) const {
  const std::vector<stage::RuleConfig>& rules = live_.composed().config.rules;
  const auto hidden_by = stage::hiding_rules(rules);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!hidden_by[i]) continue;
    const std::string& by = rules[*hidden_by[i]].name;
    if (!name.empty() && rules[i].name != name && by != name) continue;
    reply.add_warnings(fmt::format(
        "rule {} never applies: {} before it matches everything that it would", rules[i].name, by));
  }
}

RuleAdministration::Outcome<JobReply> RuleAdministration::job(const Job& request,
                                                              const Caller& caller) {
  if (request.action() == Job::LIST) return list_jobs(caller);
  return change_jobs(request, caller);
}

RuleAdministration::Outcome<stage::BookOperation> RuleAdministration::operation_of(
    const Job& request, const Caller& caller) const {
  const WallTime now = now_();
  switch (request.action()) {
    case Job::START: {
      stage::StartJob start;
      auto job = read_job(request, live_.composed().config.names);
      VPFS_TRY(job);
      start.job = std::move(*job);
      start.words = words_of(request.words());
      start.until = time_after(now, request.time_limit_seconds());
      return stage::BookOperation{.at = now, .who = caller.name, .what = std::move(start)};
    }
    case Job::STOP:
      return stage::BookOperation{
          .at = now, .who = caller.name, .what = stage::StopJob{.jobid = request.jobid()}};
    default:
      return std::unexpected(
          make_error(Error::UNSUPPORTED, "action", "this version does not know the action"));
  }
}

RuleAdministration::Outcome<JobReply> RuleAdministration::change_jobs(const Job& request,
                                                                      const Caller& caller) {
  auto operation = operation_of(request, caller);
  VPFS_TRY(operation);
  const bool was_known = knows_job(request);
  const auto change = carry_out(std::move(*operation));
  VPFS_TRY(change);
  return reply_of(request, *change, was_known);
}

JobReply RuleAdministration::reply_of(const Job& request, const stage::Change& change,
                                      bool was_known) {
  JobReply reply;
  for (const std::string& each : change.warnings) reply.add_warnings(each);
  const char* done = "is no longer registered";
  if (request.action() == Job::START) done = was_known ? "registered again" : "registered";
  reply.set_text(fmt::format("job {} {}", request.jobid(), done));
  return reply;
}

JobReply RuleAdministration::list_jobs(const Caller& caller) {
  JobReply reply;
  if (caller.rights == Rights::own) {
    const JobIds own = own_jobs(live_.composed().config, caller);
    add_jobs(reply, live_, &own);
  } else {
    add_jobs(reply, live_);
  }
  return reply;
}

}  // namespace vpfs::control
