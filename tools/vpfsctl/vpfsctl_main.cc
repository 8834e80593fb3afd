#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/command_line.h"
#include "base/version.h"
#include "tools/vpfsctl/ctl_settings.h"
#include "tools/vpfsctl/run.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/words.h"
#include "tools/vpfsctl/suggest.h"

namespace {

using vpfs::Command;
using vpfs::ctl::CtlSettings;
using vpfs::ctl::TopOrder;
using vpfs::ctl::Verb;

constexpr const char* kAbout =
    "Changes the rules of running proxies and shows what they do. Exits with 0 when it was done, "
    "with 1 when it was refused, with 2 when the command line is wrong, with 3 when no proxy "
    "answered, with 4 when it was done at some proxies only.";

Command add_command(const Command& group, CtlSettings& settings, Verb verb, const std::string& name,
                    const std::string& about) {
  return group.add_command(name, about, [&settings, verb] { settings.command.verb = verb; });
}

void add_atomic(const Command& command, CtlSettings& settings) {
  command.add_flag("--atomic", settings.command.atomic,
                   "change all proxies or none: confirm once all have it, else roll back");
}

void add_targets(const Command& app, CtlSettings& settings) {
  app.add_option("--proxy", settings.targets.proxies,
                 "ask this proxy: unix:PATH, PATH or HOST:PORT; may be given several times")
      .value_name("ENDPOINT")
      .one_value_each_time();
  app.add_flag("--all", settings.targets.all, "ask all proxies of /etc/vpfs/proxies");
  app.add_option("--proxies", settings.targets.file,
                 "ask all proxies of this file: an endpoint each line, and a name behind it")
      .value_name("FILE");
  app.add_option("--coordinator", settings.coordinators,
                 "ask the coordinator, and its proxies through it; several with commas: the one "
                 "of them that leads")
      .value_name("ENDPOINT")
      .one_value_each_time();
  app.add_option("--stage", settings.stages,
                 "ask only this proxy of the coordinator; may be given several times")
      .value_name("NAME")
      .one_value_each_time();
  app.add_option("--certificate", settings.tls.certificate, "certificate to show, for HOST:PORT")
      .value_name("FILE");
  app.add_option("--key", settings.tls.key, "its private key").value_name("FILE");
  app.add_option("--ca", settings.tls.ca, "authority that proxies' certificates are of")
      .value_name("FILE");
  app.add_option("--timeout", settings.timeout,
                 "wait for an answer for this long; otherwise 5s, and 50s for upgrade")
      .value_name("TIME");
  app.add_flag("--json", settings.json, "print JSON");
}

void add_rule_commands(const Command& app, CtlSettings& settings) {
  auto& command = settings.command;
  const Command rule = app.add_command("rule", "rules: which requests get which share");
  rule.require_command();
  const Command start = add_command(rule, settings, Verb::rule_start, "start",
                                    "start a rule; it goes before those of the configuration");
  start.add_option("NAME", command.name, "of the rule").required();
  start.add_option("COND", command.condition, "which requests: \"jobid={dd.*}&uid={1001}\"")
      .required();
  start.add_option("WORD", command.words,
                   "weight=4 rate=500MiB/s iops=2k total_rate=10GiB/s total_operations=20k "
                   "min=100MiB/s burst=2GiB burst_iops=100 latency=20ms finish=2TiB/8h rank=3 "
                   "realtime vpfs=NAME class=NAME mode=shadow exempt for=2h nodes=64");
  add_atomic(start, settings);
  const Command change =
      add_command(rule, settings, Verb::rule_change, "change", "change words of a rule");
  change.add_option("NAME", command.name, "of the rule").required();
  change.add_option("WORD", command.words, "such as weight=8").required();
  add_atomic(change, settings);
  const Command stop = add_command(rule, settings, Verb::rule_stop, "stop", "end a rule");
  stop.add_option("NAME", command.name, "of the rule").required();
  add_atomic(stop, settings);
  const Command list = add_command(rule, settings, Verb::rule_list, "list",
                                   "list all rules in the order in which they are tried");
  list.add_flag("--names", settings.names_only, "print the names only");
  const Command apply = add_command(rule, settings, Verb::rule_apply, "apply",
                                    "replace all live rules by those of a file, at once");
  apply
      .add_option("-f,--file", command.file_name, "the rules (YAML), - is standard input; required")
      .value_name("FILE")
      .required();
  apply.add_flag("--dry-run", command.dry_run, "show what would change, and change nothing");
  apply
      .add_option("--confirm", command.confirm,
                  "roll back by itself after this time, unless `rule confirm` comes before")
      .value_name("TIME");
  add_atomic(apply, settings);
  const Command plan = add_command(rule, settings, Verb::rule_plan, "plan",
                                   "tell what each virtual PFS would have got with the rules of a "
                                   "file, from what one proxy has recorded; change nothing");
  plan.add_option("-f,--file", command.file_name, "the rules (YAML), - is standard input; required")
      .value_name("FILE")
      .required();
  plan.add_option("--last", command.last, "only the last part of the recording: 10min")
      .value_name("TIME");
  add_command(rule, settings, Verb::rule_confirm, "confirm", "keep what was applied");
  add_command(rule, settings, Verb::rule_history, "history", "list the last sets of live rules");
  add_command(rule, settings, Verb::rule_rollback, "rollback", "go back to an earlier set")
      .add_option("VERSION", command.version, "number in the history")
      .required();
}

void add_job_commands(const Command& app, CtlSettings& settings) {
  auto& command = settings.command;
  const Command job = app.add_command("job", "jobs of a batch system, for its prolog and epilog");
  job.require_command();
  const Command start = add_command(job, settings, Verb::job_start, "start",
                                    "say what a job has that its requests do not show");
  start.add_option("JOBID", command.name, "of the batch system").required();
  start.add_option("--nodes", command.nodes, "number of the job's nodes; required")
      .value_name("COUNT")
      .required();
  start
      .add_option("--uid", command.users,
                  "name or number of its user; several with commas; required")
      .value_name("USER")
      .separated_by_commas()
      .one_value_each_time()
      .required();
  start.add_option("--clients", command.clients, "its nodes: n[1-4],n7 or addresses; required")
      .value_name("LIST")
      .required();
  // Scripts of batch systems give these two for each job.
  start.add_option("--account", command.account, "its account").value_name("NAME").may_be_empty();
  start.add_option("--gid", command.groups, "name or number of its group")
      .value_name("GROUP")
      .separated_by_commas()
      .one_value_each_time();
  start
      .add_option("--time-limit", command.time_limit,
                  "it ends after this time unless it is stopped before: 8h, or as Slurm writes it")
      .value_name("TIME");
  start
      .add_option("--wish", command.wishes,
                  "what the user asks for: weight=4, rate=50MiB/s or deadline=20ms; may be given "
                  "several times; what is not within --bounds is left out, with a warning")
      .value_name("WISH")
      .one_value_each_time();
  start
      .add_option("--bounds", command.bounds,
                  "of wishes: \"weight=1..8 rate=..500MiB/s deadline=5ms..\"")
      .value_name("TEXT")
      .may_be_empty();
  const Command stop =
      add_command(job, settings, Verb::job_stop, "stop", "say that a job has ended");
  stop.add_option("JOBID", command.name, "of the batch system").required();
  for (const Command& each : {start, stop}) {
    each.add_flag("--best-effort", command.best_effort,
                  "exit with 0 and a warning when a proxy does not answer");
  }
  start.add_option("WORD", command.words, "of a rule for the job, such as weight=4");
  add_command(job, settings, Verb::job_list, "list", "list the registered jobs")
      .add_flag("--names", settings.names_only, "print the job ids only");
}

void add_views(const Command& app, CtlSettings& settings) {
  const std::map<std::string, TopOrder> orders = {
      {"bytes", TopOrder::bytes}, {"iops", TopOrder::operations}, {"queue", TopOrder::queue},
      {"wait", TopOrder::wait},   {"share", TopOrder::share},     {"name", TopOrder::name}};
  add_command(app, settings, Verb::status, "status", "show what a proxy is and does");
  const Command top = add_command(app, settings, Verb::top, "top",
                                  "show rates, queues and waits of each virtual PFS, live");
  top.add_option("-n,--count", settings.top.count, "end after this many times").value_name("COUNT");
  top.add_option("-d,--period", settings.top.period, "time between two, otherwise 1s")
      .value_name("TIME");
  top.add_flag("--plain", settings.top.is_plain, "print tables, also on a terminal");
  const Command stat = add_command(app, settings, Verb::stat, "stat", "show the same once");
  for (const Command& each : {top, stat}) {
    each.add_flag("--each", settings.top.view.each_proxy, "a row for each proxy");
    each.add_choice("--sort", settings.top.view.order, orders,
                    "by bytes, iops, queue, wait, share or name")
        .value_name("KEY");
  }
  add_command(app, settings, Verb::job_stats, "job_stats", "print statistics in Lustre's form");
  add_command(app, settings, Verb::who, "who",
              "tell the rule and virtual PFS of a client, job or user, and what it has shown; "
              "without a name, list the clients in default")
      .add_option("WHO", settings.command.name, "a client, a job id or a user");
}

void add_past(const Command& app, CtlSettings& settings) {
  auto& command = settings.command;
  const Command why = add_command(app, settings, Verb::why, "why",
                                  "tell what a virtual PFS, job, user or client got in a time, "
                                  "what held it, and what would help");
  why.add_option("NAME", command.name, "a virtual PFS, a job id, a user or a client").required();
  const Command fairness =
      add_command(app, settings, Verb::fairness, "fairness",
                  "show what each virtual PFS was entitled to, wanted and got");
  const Command ledger = add_command(app, settings, Verb::ledger, "ledger",
                                     "list when limits and traffic classes held virtual PFSes");
  ledger.add_option("NAME", command.name, "only this virtual PFS or job");
  for (const Command& each : {why, fairness, ledger}) {
    each.add_option("--since", command.since,
                    "the time since so long ago; otherwise 10m, of the ledger 24h")
        .value_name("TIME");
    each.add_option("--at", command.at, "the time from then on: 14:05, \"2026-11-22 14:05\"")
        .value_name("WHEN");
    each.add_option("--for", command.duration, "the length of that time; otherwise 5m")
        .value_name("TIME");
  }
}

void add_record_commands(const Command& app, CtlSettings& settings) {
  auto& command = settings.command;
  const Command record =
      app.add_command("record", "record all requests, to look at and to try rules on");
  record.require_command();
  const Command start =
      add_command(record, settings, Verb::record_start, "start", "begin to record, in memory");
  command.size = "256MiB";
  start
      .add_option("--size", command.size,
                  "memory to take, 64 bytes for each request; otherwise 256MiB")
      .value_name("SIZE");
  start.add_option("--for", command.duration, "end after this time; otherwise at `record stop`")
      .value_name("TIME");
  add_command(record, settings, Verb::record_stop, "stop",
              "end the recording; what there is stays in memory");
  add_command(record, settings, Verb::record_show, "show", "tell how much is recorded");
  add_command(record, settings, Verb::record_drop, "drop",
              "end the recording and give its memory back");
  const Command dump = add_command(record, settings, Verb::record_dump, "dump",
                                   "write the recording of one proxy into a file");
  dump.add_option("FILE", command.file_name, "the file").required();
  dump.add_option("--format", command.format,
                  "json, perfetto or fio; otherwise by the end of FILE: .perfetto-trace, .iolog, "
                  "else json")
      .value_name("FORMAT");
}

void add_administration(const Command& app, CtlSettings& settings) {
  add_command(app, settings, Verb::config, "config",
              "print the configuration file that is in force, as it was read");
  add_command(app, settings, Verb::reload, "reload", "read the configuration file again");
  add_command(app, settings, Verb::drain, "drain", "accept no clients, finish, and exit");
  const Command upgrade = add_command(app, settings, Verb::upgrade, "upgrade",
                                      "start a new process that takes over the connections");
  upgrade
      .add_option("--binary", settings.command.file_name,
                  "the program to start, on the proxy's host; otherwise the file that it runs")
      .value_name("PATH");
  const Command bypass = add_command(app, settings, Verb::bypass, "bypass",
                                     "forward everything at once and hold nothing, or no longer");
  bypass.add_option("STATE", settings.command.name, "on or off").required();
  bypass.add_option("WORD", settings.command.words, "for=2h ends it by itself");
}

void add_selftest(const Command& app, CtlSettings& settings) {
  vpfs::selftest::Options& options = settings.selftest;
  const Command selftest =
      add_command(app, settings, Verb::selftest, "selftest",
                  "measure one data server with a load of its own: what it does at which depth, "
                  "whether shares and limits hold, what the proxy costs");
  selftest
      .add_option("--on", options.on,
                  "the file system through the proxy, as for vpfs-load: tcp://HOST:PORT/NAME or "
                  "beegfs://HOST:PORT/TARGET; required")
      .value_name("ADDRESS");
  selftest
      .add_option("--directory", options.directory,
                  "where its files are, at most 128 MiB; it is made if missing; required")
      .value_name("PATH");
  selftest
      .add_option("--direct", options.direct,
                  "the same file system past the proxy: measures the server there, and what the "
                  "proxy costs; no share holds this load")
      .value_name("ADDRESS");
  selftest.add_option("--minutes", options.minutes, "how long it measures, 0.02 to 10; otherwise 3")
      .value_name("COUNT");
  selftest.add_option("--size", options.size, "of a large request; otherwise 1MiB")
      .value_name("SIZE");
  selftest
      .add_option("--server", options.servers,
                  "alias of the proxy's server, if the file system has others; may be given "
                  "several times")
      .value_name("ALIAS")
      .one_value_each_time();
  selftest.add_option("--share", options.share, "never take more than this: 200MiB/s")
      .value_name("RATE");
  selftest.add_flag("--busy", options.busy, "run although others use the server; needs --share");
  selftest.add_option("--report", options.report, "also write the results to this file, as JSON")
      .value_name("FILE");
  selftest.add_option("--plot", options.plot, "draw the results into this file, as SVG")
      .value_name("FILE");
  selftest.add_flag("--clean", options.clean,
                    "only remove the rules and files of a self-test that was killed");
}

// Names the word that is not a command or option, and what may have been meant.
std::string failure_text(const vpfs::UsageMistake& mistake) {
  const std::vector<std::string>& commands = mistake.commands;
  std::string text = mistake.text;
  if (!mistake.unknown.empty() && mistake.unknown[0].starts_with('-')) {
    text = vpfs::ctl::unknown_option(mistake.unknown[0], mistake.options);
  } else if (!mistake.unknown.empty() && !commands.empty()) {
    text = vpfs::ctl::unknown_command(mistake.unknown[0], mistake.command, commands);
  } else if (mistake.unknown.empty() && !commands.empty()) {
    text = fmt::format("a command is missing: {}", fmt::join(commands, ", "));
  }
  return fmt::format("vpfsctl: {}\nRun with --help for more information.\n", text);
}

// Without the program's name, which precedes it.
std::string first_line(const std::string& text) {
  constexpr std::string_view kProgram = "vpfsctl: ";
  const std::size_t begin = text.starts_with(kProgram) ? kProgram.size() : 0;
  return text.substr(begin, text.find('\n') - begin);
}

int run(int argc, char** argv) {
  CtlSettings settings;
  vpfs::OptionParser app{kAbout};
  app.take_options_after_commands();
  app.require_command();
  std::string failure;
  app.describe_mistakes(
      [&failure](const vpfs::UsageMistake& mistake) { return failure = failure_text(mistake); });
  add_targets(app, settings);
  add_rule_commands(app, settings);
  add_job_commands(app, settings);
  add_views(app, settings);
  add_past(app, settings);
  add_record_commands(app, settings);
  add_administration(app, settings);
  add_selftest(app, settings);
  std::vector<std::string> arguments =
      vpfs::ctl::split_quoted_rule(std::vector<std::string>(argv, argv + argc));
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  if (const auto code = app.parse("vpfsctl", static_cast<int>(words.size()), words.data())) {
    // The mistake may be before --json, which may not have been read.
    if (!failure.empty() && std::ranges::find(arguments, "--json") != arguments.end()) {
      fmt::print("{}", vpfs::ctl::problem_json(first_line(failure), vpfs::ctl::ExitCode::usage,
                                               std::string(vpfs::version())));
    }
    return *code;
  }
  if (const char* environment = std::getenv("VPFS_PROXY")) {
    settings.targets.environment = environment;
  }
  for (const auto& [name, file] : {std::pair("VPFS_CERTIFICATE", &settings.tls.certificate),
                                   {"VPFS_KEY", &settings.tls.key},
                                   {"VPFS_CA", &settings.tls.ca}}) {
    if (const char* environment = std::getenv(name); environment != nullptr && file->empty()) {
      *file = environment;
    }
  }
  const vpfs::ctl::TargetOptions& targets = settings.targets;
  const bool names_proxies = !targets.proxies.empty() || targets.all || !targets.file.empty();
  if (const char* environment = std::getenv("VPFS_COORDINATOR");
      environment != nullptr && settings.coordinators.empty() && !names_proxies) {
    settings.coordinators = {environment};
  }
  settings.top.json = settings.json;
  return static_cast<int>(vpfs::ctl::run(settings, std::string(vpfs::version())));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return vpfs::exit_after_output("vpfsctl", run(argc, argv));
  } catch (const std::exception& problem) {
    fmt::print(stderr, "vpfsctl: {}\n", problem.what());
    return 1;
  }
}
