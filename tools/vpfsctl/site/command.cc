#include "tools/vpfsctl/site/command.h"

#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/units.h"
#include "tools/vpfsctl/site/job_words.h"
#include "tools/vpfsctl/site/past_time.h"
#include "tools/vpfsctl/site/words.h"

namespace vpfs::ctl {
namespace {

using control::Envelope;

// So many that are not asked about are named in the answer.
constexpr std::uint32_t kOthersOfWhy = 50;
constexpr std::uint32_t kOthersOfFairness = 2000;

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Field>
Result<void> add_ids(const std::vector<std::string>& texts, std::string_view option,
                     const std::function<std::optional<std::uint32_t>(const std::string&)>& look_up,
                     Field* field) {
  for (const std::string& text : texts) {
    std::optional<std::uint32_t> id = number(text);
    if (!id && look_up) id = look_up(text);
    if (!id)
      return fail(fmt::format("{}: \"{}\" is neither a number nor known here", option, text));
    field->Add(*id);
  }
  return {};
}

// NAME of a rule: a condition there means that NAME was forgotten.
Result<void> check_rule_name(const Command& command, std::string_view usage) {
  if (command.name.find('=') != std::string::npos) {
    return fail(fmt::format("the rule's name is missing before \"{}\": {}", command.name, usage));
  }
  return {};
}

Result<Envelope> rule_start(const Command& command) {
  VPFS_TRY(check_rule_name(command, "rule start NAME COND [WORDS]"));
  std::vector<std::string> arguments = {command.condition};
  arguments.insert(arguments.end(), command.words.begin(), command.words.end());
  Result<ConditionAndWords> split = split_condition(arguments);
  VPFS_TRY(split);
  Envelope request;
  control::Rule& rule = *request.mutable_rule();
  rule.set_action(control::Rule::START);
  rule.set_name(command.name);
  rule.set_condition(std::move(split->condition));
  for (std::string& word : split->words) rule.add_words(std::move(word));
  return request;
}

Result<Envelope> rule_change(const Command& command) {
  VPFS_TRY(check_rule_name(command, "rule change NAME WORDS"));
  if (command.words.empty()) return fail("expected a word to change, such as weight=8");
  Envelope request;
  control::Rule& rule = *request.mutable_rule();
  rule.set_action(control::Rule::CHANGE);
  rule.set_name(command.name);
  for (const std::string& word : command.words) rule.add_words(word);
  return request;
}

Result<Envelope> rule_apply(const Command& command) {
  Envelope request;
  control::Rule& rule = *request.mutable_rule();
  rule.set_action(control::Rule::APPLY);
  rule.set_file(command.file_text);
  rule.set_file_name(command.file_name);
  rule.set_dry_run(command.dry_run || command.verb == Verb::rule_plan);
  if (!command.confirm.empty()) {
    const Result<std::uint64_t> seconds = parse_seconds(command.confirm);
    if (!seconds) return fail("--confirm: " + seconds.error().message);
    if (*seconds == 0) return fail("--confirm: expected a time, such as 60s");
    rule.set_confirm_seconds(*seconds);
  }
  return request;
}

Envelope rule_action(control::Rule::Action action) {
  Envelope request;
  request.mutable_rule()->set_action(action);
  return request;
}

Result<Envelope> rule_stop(const Command& command) {
  Envelope request = rule_action(control::Rule::STOP);
  request.mutable_rule()->set_name(command.name);
  return request;
}

Result<Envelope> rule_rollback(const Command& command) {
  Envelope request = rule_action(control::Rule::ROLLBACK);
  request.mutable_rule()->set_version(command.version);
  return request;
}

Result<Envelope> job_start(const Command& command, const Names& names) {
  Envelope request;
  control::Job& job = *request.mutable_job();
  job.set_action(control::Job::START);
  job.set_jobid(command.name);
  if (command.nodes == 0) return fail("--nodes: expected the number of nodes, at least 1");
  job.set_nodes(command.nodes);
  VPFS_TRY(add_ids(command.users, "--uid", names.user, job.mutable_uids()));
  VPFS_TRY(add_ids(command.groups, "--gid", names.group, job.mutable_gids()));
  Result<std::vector<std::string>> clients = split_clients(command.clients);
  if (!clients) return fail("--clients: " + clients.error().message);
  for (std::string& client : *clients) job.add_clients(std::move(client));
  if (!command.time_limit.empty()) {
    const Result<std::uint64_t> seconds = parse_time_limit(command.time_limit);
    if (!seconds) return fail("--time-limit: " + seconds.error().message);
    job.set_time_limit_seconds(*seconds);
  }
  JobWords asked = job_words(command);
  job.set_account(std::move(asked.account));
  for (std::string& word : asked.words) job.add_words(std::move(word));
  return request;
}

Envelope job_action(control::Job::Action action, const std::string& jobid) {
  Envelope request;
  request.mutable_job()->set_action(action);
  request.mutable_job()->set_jobid(jobid);
  return request;
}

Result<Envelope> bypass(const Command& command) {
  Envelope request;
  control::Bypass& body = *request.mutable_bypass();
  if (command.name != "on" && command.name != "off") {
    return fail(fmt::format("bypass \"{}\": expected on or off", command.name));
  }
  body.set_on(command.name == "on");
  for (const std::string& word : command.words) {
    if (!body.on()) return fail(fmt::format("bypass off takes no \"{}\"", word));
    if (!word.starts_with("for=")) {
      return fail(
          fmt::format("bypass on: \"{}\" is not known: expected for=TIME, such as for=2h", word));
    }
    const Result<std::uint64_t> seconds = parse_seconds(std::string_view(word).substr(4));
    if (!seconds) return fail("for: " + seconds.error().message);
    if (*seconds == 0) return fail("for: expected a time, such as for=2h");
    body.set_for_seconds(*seconds);
  }
  return request;
}

Envelope status_request(bool json) {
  Envelope request;
  if (json) {
    request.mutable_status();
  } else {
    request.mutable_stats()->set_rules(true);
  }
  return request;
}

Envelope stats_request(bool rules) {
  Envelope request;
  request.mutable_stats()->set_rules(rules);
  return request;
}

Envelope record_action(control::Record::Action action) {
  Envelope request;
  request.mutable_record()->set_action(action);
  return request;
}

Result<Envelope> record_start(const Command& command) {
  Envelope request = record_action(control::Record::START);
  const Result<Bytes> size = parse_bytes(command.size);
  if (!size) return fail("--size: " + size.error().message);
  request.mutable_record()->set_bytes(size->count);
  if (command.duration.empty()) return request;
  const Result<std::uint64_t> seconds = parse_option_seconds("--for", command.duration);
  VPFS_TRY(seconds);
  request.mutable_record()->set_for_seconds(*seconds);
  return request;
}

Result<Envelope> ledger(const Command& command, WallTime now) {
  const bool has_time = !command.since.empty() || !command.at.empty();
  const Result<PastTime> time =
      read_past_time(has_time ? command.since : "24h", command.at, command.duration, now);
  VPFS_TRY(time);
  Envelope request;
  control::Ledger& body = *request.mutable_ledger();
  body.set_name(command.name);
  body.set_back_seconds(time->back_seconds);
  body.set_from_at(time->from_at);
  body.set_to_at(time->to_at);
  return request;
}

Result<Envelope> past(const Command& command, WallTime now) {
  const Result<PastTime> time = read_past_time(command.since, command.at, command.duration, now);
  VPFS_TRY(time);
  Envelope request;
  control::Past& body = *request.mutable_past();
  body.set_name(command.name);
  body.set_back_seconds(time->back_seconds);
  body.set_from_at(time->from_at);
  body.set_to_at(time->to_at);
  body.set_most(command.verb == Verb::why ? kOthersOfWhy : kOthersOfFairness);
  return request;
}

}  // namespace

Result<Envelope> to_request(const Command& command, const Names& names, bool json) {
  Envelope request;
  switch (command.verb) {
    case Verb::rule_start:
      return rule_start(command);
    case Verb::rule_change:
      return rule_change(command);
    case Verb::rule_stop:
      return rule_stop(command);
    case Verb::rule_list:
      return rule_action(control::Rule::LIST);
    case Verb::rule_apply:
    case Verb::rule_plan:
      return rule_apply(command);
    case Verb::rule_confirm:
      return rule_action(control::Rule::CONFIRM);
    case Verb::rule_history:
      return rule_action(control::Rule::HISTORY);
    case Verb::rule_rollback:
      return rule_rollback(command);
    case Verb::job_start:
      return job_start(command, names);
    case Verb::job_stop:
      return job_action(control::Job::STOP, command.name);
    case Verb::job_list:
      return job_action(control::Job::LIST, "");
    case Verb::status:
    case Verb::selftest:
      return status_request(json);
    case Verb::top:
    case Verb::stat:
      return stats_request(true);
    case Verb::job_stats:
      return stats_request(false);
    case Verb::bypass:
      return bypass(command);
    case Verb::who:
      request.mutable_why()->set_who(command.name);
      break;
    case Verb::why:
    case Verb::fairness:
      return past(command, names.now);
    case Verb::ledger:
      return ledger(command, names.now);
    case Verb::record_show:
    case Verb::record_dump:
      return record_action(control::Record::SHOW);
    case Verb::record_start:
      return record_start(command);
    case Verb::record_stop:
      return record_action(control::Record::STOP);
    case Verb::record_drop:
      return record_action(control::Record::DROP);
    case Verb::config:
      request.mutable_in_force();
      break;
    case Verb::reload:
      request.mutable_reload();
      break;
    case Verb::drain:
      request.mutable_drain();
      break;
    case Verb::upgrade:
      request.mutable_upgrade()->set_binary(command.file_name);
      break;
  }
  return request;
}

}  // namespace vpfs::ctl
