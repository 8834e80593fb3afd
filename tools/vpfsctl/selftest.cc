#include "tools/vpfsctl/selftest.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <fmt/format.h>

#include "base/log/log.h"
#include "base/system_clock.h"
#include "net/socket_options.h"
#include "tools/load/owner.h"
#include "tools/load/removal.h"
#include "tools/load/run.h"
#include "tools/output/output_file.h"
#include "tools/selftest/judgement.h"
#include "tools/selftest/loads.h"
#include "tools/selftest/report.h"
#include "tools/selftest/run.h"

namespace vpfs::ctl {
namespace {

using selftest::ProxyState;

selftest::Done done_for(const control::VirtualPfs& virtual_pfs) {
  selftest::Done done;
  for (const control::Amount& each : {virtual_pfs.read(), virtual_pfs.write()}) {
    done.requests += each.requests();
    done.bytes += each.bytes();
  }
  return done;
}

class AskedProxy final : public selftest::TestedProxy {
 public:
  explicit AskedProxy(AskedProxies& proxies) : proxies_(proxies) {}

  Result<ProxyState> state() override {
    control::Envelope request;
    request.mutable_stats()->set_rules(true);
    const Result<control::Envelope> reply = ask(request);
    VPFS_TRY(reply);
    const control::StatsReply& stats = reply->stats_reply();
    ProxyState state = {.name = stats.name(),
                        .policy = stats.policy(),
                        .depth_requests = stats.depth_requests(),
                        .at = std::chrono::microseconds(stats.at_us()),
                        .bypass = stats.bypass(),
                        .draining = stats.draining(),
                        .sees_all = !stats.partial(),
                        .coordinated = stats.allocated(),
                        .own = {},
                        .others = {},
                        .rules = {}};
    for (const control::VirtualPfs& each : stats.virtual_pfs()) {
      const bool is_own = each.name().starts_with(selftest::kMark);
      (is_own ? state.own : state.others)[{each.id(), each.generation()}] = done_for(each);
    }
    for (const control::RuleState& each : stats.rules()) {
      if (!each.name().starts_with(selftest::kMark) || each.origin() == "file") continue;
      state.rules.push_back({.name = each.name(), .condition = each.condition()});
    }
    return state;
  }

  Result<void> start_rule(const selftest::LiveRule& rule,
                          const std::vector<std::string>& words) override {
    control::Envelope request = rule_request(control::Rule::START, rule.name, words);
    request.mutable_rule()->set_condition(rule.condition);
    return change(request);
  }
  Result<void> change_rule(const std::string& name,
                           const std::vector<std::string>& words) override {
    return change(rule_request(control::Rule::CHANGE, name, words));
  }
  Result<void> stop_rule(const std::string& name) override {
    return change(rule_request(control::Rule::STOP, name, {}));
  }
  // Whether the last question that failed reached the proxy.
  [[nodiscard]] ExitCode code() const {
    return last_ == Outcome::unreachable ? ExitCode::unreachable : ExitCode::refused;
  }

 private:
  static control::Envelope rule_request(control::Rule::Action action, const std::string& name,
                                        const std::vector<std::string>& words) {
    control::Envelope request;
    control::Rule& rule = *request.mutable_rule();
    rule.set_action(action);
    rule.set_name(name);
    for (const std::string& word : words) rule.add_words(word);
    return request;
  }
  Result<void> change(const control::Envelope& request) {
    const Result<control::Envelope> reply = ask(request);
    VPFS_TRY(reply);
    return {};
  }
  Result<control::Envelope> ask(const control::Envelope& request) {
    ProxyAnswer answer = std::move(proxies_.ask_all(request).front());
    if (answer.outcome == Outcome::done) return std::move(answer.reply);
    last_ = answer.outcome;
    const std::string place = answer.place.empty() ? "" : answer.place + ": ";
    return fail(fmt::format("{}: {}{}", answer.name, place, answer.text));
  }

  AskedProxies& proxies_;
  Outcome last_ = Outcome::refused;
};

// A file of the results, if the command line names one. It is opened before the measurements, so
// that a mistake does not cost them.
class ResultFile {
 public:
  [[nodiscard]] Result<void> open(const std::string& path) {
    if (path.empty()) return {};
    return file_.emplace().open(path, 0666);
  }
  [[nodiscard]] Result<void> write(const std::string& text) {
    if (!file_) return {};
    file_->write(text);
    return file_->finish();
  }

 private:
  std::optional<output::OutputFile> file_;
};

Result<void> print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return {};
  }
  return fail(fmt::format("standard output: {}", std::generic_category().message(errno)));
}

// Keeps a signal for the next look, as between two loads there is none that waits for it.
class Signals {
 public:
  Signals() {
    signals_.async_wait([this](std::error_code error, int /*number*/) { came_ = !error; });
  }
  [[nodiscard]] bool came() {
    loop_.poll();
    return came_;
  }
  // Ends before its time if one comes.
  void pause(Duration time) {
    if (!came()) loop_.run_one_for(time);
  }

 private:
  bool came_ = false;
  asio::io_context loop_{1};
  asio::signal_set signals_{loop_, SIGINT, SIGTERM};
};

ExitCode clean(const selftest::Settings& settings, AskedProxy& proxy, const Failures& failed) {
  const Result<ProxyState> state = proxy.state();
  if (!state) return failed(state.error().message, proxy.code());
  const Result<std::size_t> rules = selftest::end_rules(proxy, load::is_running);
  if (!rules) return failed.refused(rules.error().message);
  selftest::Phase phase;
  phase.weights = {1, 1};
  const SystemClock clock;
  const Result<void> removed =
      load::remove_files(selftest::load_of(settings, phase, state->name), clock);
  if (!removed) return failed.refused(removed.error().message);
  fmt::print("{} rules have ended, and no file of a self-test is in {}\n", *rules,
             settings.directory);
  return ExitCode::done;
}

ExitCode measure(const CtlSettings& settings, const selftest::Settings& checked, AskedProxy& proxy,
                 const Failures& failed) {
  ResultFile report;
  ResultFile plot;
  for (const auto& [file, path] :
       {std::pair(&report, &settings.selftest.report), std::pair(&plot, &settings.selftest.plot)}) {
    if (const Result<void> opened = file->open(*path); !opened) {
      return failed(opened.error().message, ExitCode::usage);
    }
  }
  Signals signals;
  const SystemClock clock;
  const auto say = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const selftest::Means means = {
      .clock = clock,
      .load = [&](const load::LoadSettings& each) { return load::run(each, clock, {}); },
      .pause = [&](Duration time) { signals.pause(time); },
      .say = say,
      .stopped = [&] { return signals.came(); },
      .has_ended = load::has_ended,
      .self = load::this_owner()};
  const Result<selftest::Record> record = selftest::run(checked, proxy, means);
  if (!record) return failed(record.error().message, proxy.code());
  const selftest::Findings findings = selftest::judge(*record, checked.share);
  const std::string json = selftest::to_json(checked, *record, findings);
  Result<void> all = print(settings.json ? json : selftest::to_words(checked, *record, findings));
  for (const Result<void>& each :
       {report.write(json), plot.write(selftest::to_svg(*record, findings))}) {
    if (all && !each) all = each;
  }
  if (!all) {
    fmt::print(stderr, "vpfsctl: {}\n", all.error().message);  // the results are printed
    return ExitCode::refused;
  }
  return findings.good() ? ExitCode::done : ExitCode::refused;
}

}  // namespace

ExitCode run_selftest(const CtlSettings& settings, AskedProxies& proxies, const Failures& failed) {
  const Result<selftest::Settings> checked = selftest::check(settings.selftest);
  if (!checked) return failed(checked.error().message, ExitCode::usage);
  if (proxies.size() != 1) {
    return failed(fmt::format("selftest: expected one proxy, and these are {}", proxies.size()),
                  ExitCode::usage);
  }
  if (const Result<void> logging = set_up_logging("vpfsctl", "info"); !logging) {
    return failed.refused(logging.error().message);
  }
  (void)net::raise_open_file_limit();
  net::ignore_broken_pipes();
  AskedProxy proxy(proxies);
  return settings.selftest.clean ? clean(*checked, proxy, failed)
                                 : measure(settings, *checked, proxy, failed);
}

}  // namespace vpfs::ctl
