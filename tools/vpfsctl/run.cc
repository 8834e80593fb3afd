#include "tools/vpfsctl/run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/config_file.h"
#include "base/json_text.h"
#include "base/system_clock.h"
#include "base/units.h"
#include "control/wire/accounts.h"
#include "control/words/fairness_text.h"
#include "control/words/printable.h"
#include "control/words/site_past.h"
#include "control/words/why_text.h"
#include "tools/vpfsctl/coordinator_status.h"
#include "tools/vpfsctl/failures.h"
#include "tools/vpfsctl/record_dump.h"
#include "tools/vpfsctl/report.h"
#include "tools/vpfsctl/rule_plan.h"
#include "tools/vpfsctl/selftest.h"
#include "tools/vpfsctl/site/asked_proxies.h"
#include "tools/vpfsctl/site/atomic.h"
#include "tools/vpfsctl/site/coordinator_client.h"
#include "tools/vpfsctl/site/job_words.h"
#include "tools/vpfsctl/top/top.h"

namespace vpfs::ctl {
namespace {

using words::add_up;
using words::fairness_text;
using words::printable;
using words::SitePast;
using words::why_text;

Result<std::string> read_file(const std::string& file) {
  const bool is_standard = file == "-";
  ConfigErrors errors(is_standard ? "standard input" : file);
  std::optional<std::string> text =
      is_standard ? read_config_stream(STDIN_FILENO, errors) : read_config_text(errors);
  if (!text) return fail(errors.lines().front());
  return std::move(*text);
}

std::vector<std::string> sockets_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code problem;
  for (std::filesystem::directory_iterator each(directory, problem), end; !problem && each != end;
       each.increment(problem)) {
    std::error_code ignored;
    if (each->path().extension() == ".sock" && each->is_socket(ignored)) {
      paths.push_back(each->path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

Names names_of_this_host() {
  return {.user = control::user_id, .group = control::group_id, .now = wall_clock_now()};
}

// Each name once, in the order of the first proxy that has it.
std::string names_text(std::span<const ProxyAnswer> answers) {
  std::set<std::string> known;
  std::string text;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) text += printable(name) + "\n";
  };
  for (const ProxyAnswer& answer : answers) {
    for (const auto& rule : answer.reply.rule_reply().rules()) add(rule.name());
    for (const auto& job : answer.reply.job_reply().jobs()) add(job.jobid());
  }
  return text;
}

void warn(const std::string& text) {
  fmt::print(stderr, "vpfsctl: warning: {}\n", text);
}

std::vector<ProxyAnswer> ask(AskedProxies& proxies, const Command& command,
                             const control::Envelope& request, Duration timeout) {
  std::vector<ProxyAnswer> answers;
  if (command.atomic && proxies.size() > 1) {
    const auto ask_some = [&proxies](const std::vector<Question>& questions) {
      return proxies.ask(questions);
    };
    answers = change_all(proxies.size(), request, confirm_seconds(timeout), ask_some);
  } else {
    answers = proxies.ask_all(request);
  }
  if (command.best_effort) forgive(answers, command.verb == Verb::job_stop);
  return answers;
}

void write(const std::string& text, std::FILE* to) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

std::vector<SitePast::Server> past_replies(std::span<const ProxyAnswer> answers) {
  std::vector<SitePast::Server> servers;
  for (const ProxyAnswer& answer : answers) {
    if (answer.outcome != Outcome::done || !answer.reply.has_past_reply()) continue;
    servers.push_back({.name = answer.name, .reply = answer.reply.past_reply()});
  }
  return servers;
}

// What all proxies together say of the past, and errors of those that did not answer.
ExitCode print_past(const CtlSettings& settings, std::span<const ProxyAnswer> answers) {
  for (const ProxyAnswer& answer : answers) {
    if (answer.outcome == Outcome::done) continue;
    write(error_text(answer, ""), stderr);
  }
  const ExitCode code = exit_code(answers);
  if (code != ExitCode::done && code != ExitCode::partly) return code;
  const SitePast past = add_up(past_replies(answers));
  if (settings.command.verb == Verb::fairness) {
    write(fairness_text(past), stdout);
    return code;
  }
  const Result<std::string> text = why_text(past, settings.command.name);
  if (!text) {
    fmt::print(stderr, "vpfsctl: {}\n", text.error().message);
    return ExitCode::refused;
  }
  write(*text, stdout);
  return code;
}

// Writes the recording of the one stage that is asked into a file.
ExitCode run_record_dump(const CtlSettings& settings, const AskStages& ask, const Failures& failed,
                         const std::string& version) {
  const Command& command = settings.command;
  const std::map<std::string, DumpFormat> formats = {{"", format_of(command.file_name)},
                                                     {"json", DumpFormat::json},
                                                     {"perfetto", DumpFormat::perfetto},
                                                     {"fio", DumpFormat::fio}};
  const auto format = formats.find(command.format);
  if (format == formats.end()) {
    return failed(fmt::format("--format: \"{}\" is not known: expected json, perfetto or fio",
                              command.format));
  }
  const Result<Fetched> fetched = fetch_recording(ask);
  if (!fetched) return failed.refused(fetched.error().message);
  if (fetched->failures.size() > 1) {
    return failed(
        fmt::format("record dump: expected one proxy, and these are {}", fetched->failures.size()));
  }
  if (!fetched->failures.empty()) return failed.answers(fetched->failures);
  const Result<std::string> written =
      write_recording(fetched->recording, command.file_name, format->second);
  if (!written) return failed.refused(written.error().message);
  const std::string text =
      *written + (fetched->names_are_full
                      ? "; some have no connection or virtual PFS: there were too many"
                      : "");
  if (settings.json) {
    const nlohmann::ordered_json all = {
        {"version", version}, {"file", command.file_name}, {"text", text}};
    fmt::print("{}\n", json_text(all, 2));
  } else {
    fmt::print("{}\n", text);
  }
  return ExitCode::done;
}

// Tries a set of rules on the recording of the one stage that is asked.
ExitCode run_rule_plan(const CtlSettings& settings, const control::Envelope& dry_run,
                       const AskStages& ask, const Failures& failed) {
  const Command& command = settings.command;
  PlanOptions options = {.dry_run = dry_run, .last = std::nullopt, .json = settings.json};
  if (!command.last.empty()) {
    const Result<Duration> last = parse_duration(command.last);
    if (!last) return failed("--last: " + last.error().message);
    if (*last <= Duration::zero()) return failed("--last: expected a time, such as 10min");
    options.last = *last;
  }
  const Result<Planned> planned = plan_rules(options, ask);
  if (!planned) return failed.refused(planned.error().message);
  if (planned->failures.size() > 1) {
    return failed(
        fmt::format("rule plan: expected one proxy, and these are {}", planned->failures.size()));
  }
  if (!planned->failures.empty()) return failed.answers(planned->failures);
  write(planned->output, stdout);
  return ExitCode::done;
}

ExitCode print(const CtlSettings& settings, std::span<const ProxyAnswer> answers,
               const control::Envelope& request, const std::string& version) {
  if (request.has_past() && !settings.json) return print_past(settings, answers);
  Report told = report(settings.command, answers, request.rule().condition());
  if (settings.json) {
    told.output = answers_json(answers, version, 2);
  } else if (settings.names_only) {
    told.output = names_text(answers);
  }
  write(told.output, stdout);
  write(told.errors, stderr);
  const ExitCode code = exit_code(answers);
  if (request.has_past() && settings.command.verb == Verb::why && code == ExitCode::done &&
      !why_text(add_up(past_replies(answers)), settings.command.name)) {
    return ExitCode::refused;  // as in text: nothing was done under that name
  }
  return code;
}

// The state of a coordinator, as text; the stages that it misses count as not reached.
ExitCode run_coordinator_status(CoordinatorClient& coordinator) {
  control::Envelope request;
  request.mutable_status();
  std::vector<ProxyAnswer> answers = {coordinator.ask(request)};
  if (answers.front().outcome != Outcome::done) {
    write(error_text(answers.front(), ""), stderr);
    return exit_code(answers);
  }
  const std::string json = answers.front().reply.status_reply().json();
  write(coordinator_status_text(json), stdout);
  for (ProxyAnswer& each : missing_stages(json)) answers.push_back(std::move(each));
  return exit_code(answers);
}

// The answers of a coordinator to a command, or of its stages through it.
std::vector<ProxyAnswer> ask(CoordinatorClient& coordinator, const CtlSettings& settings,
                             const control::Envelope& request) {
  const Command& command = settings.command;
  std::vector<ProxyAnswer> answers;
  const bool is_whole_site = settings.stages.empty();
  if (is_whole_site && (is_of_coordinator(command) || command.verb == Verb::status)) {
    answers.push_back(coordinator.ask(request));
  }
  if (!is_whole_site || !is_of_coordinator(command)) {
    for (ProxyAnswer& each : coordinator.ask_stages(request, settings.stages)) {
      answers.push_back(std::move(each));
    }
  }
  if (command.best_effort) forgive(answers, command.verb == Verb::job_stop);
  return answers;
}

ExitCode run_with_coordinator(const std::vector<control::PortAddress>& addresses,
                              const CtlSettings& settings, SiteOptions options,
                              const control::Envelope& request, const Failures& failed,
                              const std::string& version) {
  if (settings.command.verb == Verb::top) {
    return run_site_top(addresses, std::move(options), settings.top, settings.stages, request,
                        version);
  }
  CoordinatorClient coordinator(addresses, std::move(options));
  if (settings.command.verb == Verb::stat && !settings.json) {
    return run_site_stat(coordinator, settings.top, settings.stages, request);
  }
  if (settings.command.verb == Verb::status && !settings.json && settings.stages.empty()) {
    return run_coordinator_status(coordinator);
  }
  if (settings.command.verb == Verb::record_dump) {
    return run_record_dump(
        settings, [&](const auto& each) { return ask(coordinator, settings, each); }, failed,
        version);
  }
  const std::vector<ProxyAnswer> answers = ask_with_wishes(
      settings.command, request,
      [&](const control::Envelope& each) { return ask(coordinator, settings, each); }, warn);
  return print(settings, answers, request, version);
}

// The program that an upgrade starts has 30 s to dial, and then 10 s to be ready.
Result<Duration> timeout_of(const CtlSettings& settings) {
  if (!settings.timeout.empty()) return parse_duration(settings.timeout);
  using namespace std::chrono_literals;
  return settings.command.verb == Verb::upgrade ? 50s : 5s;
}

}  // namespace

ExitCode run(const CtlSettings& settings, const std::string& version) {
  const Failures failed(settings.json, version);
  const Result<Duration> timeout = timeout_of(settings);
  if (!timeout) return failed("--timeout: " + timeout.error().message);
  if (*timeout <= Duration::zero()) return failed("--timeout: expected a time, such as 5s");
  Command command = settings.command;
  if (command.verb == Verb::rule_apply || command.verb == Verb::rule_plan) {
    Result<std::string> text = read_file(command.file_name);
    if (!text) return failed(text.error().message);
    command.file_text = std::move(*text);
  }
  const Result<control::Envelope> request =
      to_request(command, names_of_this_host(), settings.json);
  if (!request) return failed(request.error().message);
  for (const std::string& warning : job_words(command).warnings) warn(warning);
  if (command.verb == Verb::top) {
    if (const auto period = top_period(settings.top); !period) {
      return failed(period.error().message);
    }
  }
  Result<SiteOptions> options = site_options(settings.tls, *timeout, version);
  const auto coordinators = coordinators_of(settings);
  if (!coordinators) return failed(coordinators.error().message);
  if (!coordinators->empty()) {
    if (const auto good = check_for_coordinator(settings); !good) {
      return failed(good.error().message);
    }
    if (!options) return failed(options.error().message);
    return run_with_coordinator(*coordinators, settings, std::move(*options), *request, failed,
                                version);
  }
  if (!settings.stages.empty()) return failed("--stage needs --coordinator");
  Result<ChosenTargets> chosen =
      choose_targets(settings.targets, {.read = read_file, .sockets = sockets_in});
  if (!chosen) return failed(chosen.error().message);
  if (!chosen->note.empty()) fmt::print(stderr, "vpfsctl: {}\n", chosen->note);
  if (!options) return failed(options.error().message);
  if (command.verb == Verb::top) {
    return run_top(std::move(chosen->targets), std::move(*options), settings.top, *request,
                   version);
  }
  AskedProxies proxies(std::move(chosen->targets), std::move(*options));
  if (command.verb == Verb::stat && !settings.json)
    return run_stat(proxies, settings.top, *request);
  if (command.verb == Verb::record_dump) {
    return run_record_dump(
        settings, [&](const auto& each) { return proxies.ask_all(each); }, failed, version);
  }
  if (command.verb == Verb::selftest) return run_selftest(settings, proxies, failed);
  if (command.verb == Verb::rule_plan) {
    return run_rule_plan(
        settings, *request, [&](const auto& each) { return proxies.ask_all(each); }, failed);
  }
  const std::vector<ProxyAnswer> answers = ask_with_wishes(
      command, *request,
      [&](const control::Envelope& each) { return ask(proxies, command, each, *timeout); }, warn);
  return print(settings, answers, *request, version);
}

}  // namespace vpfs::ctl
