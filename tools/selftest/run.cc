#include "tools/selftest/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "tools/selftest/held_rules.h"
#include "tools/selftest/loads.h"
#include "tools/selftest/phase_text.h"
#include "tools/selftest/plan.h"

namespace vpfs::selftest {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLook = 1s;  // how long the proxy is watched before
constexpr double kBusyBytes = static_cast<double>(kMiB);
constexpr double kBusyRequests = 20;
constexpr double kBesidePart = 0.05;  // others may do so much of the load meanwhile

// What was done within a time.
struct Rates {
  double bytes = 0;  // each second
  double requests = 0;
};

Rates rates(const DoneFor& before, const DoneFor& after, Duration time) {
  const double seconds = std::max(in_seconds(time), 1e-3);
  const Done done = done_between(before, after);
  return {.bytes = static_cast<double>(done.bytes) / seconds,
          .requests = static_cast<double>(done.requests) / seconds};
}

std::string in_words(const Rates& rates) {
  return fmt::format("{:.1f} MiB/s and {:.0f} requests each second",
                     rates.bytes / static_cast<double>(kMiB), rates.requests);
}

// A proxy where nothing can be measured.
Result<void> check_state(const ProxyState& state) {
  if (state.bypass) return fail("bypass is on: nothing is held, so there are no shares to test");
  if (state.draining) return fail("the proxy is draining: it takes no new connections");
  if (state.sees_all) return {};
  return fail(
      "the proxy shows only some of its virtual PFSes: a self-test needs the right to see "
      "and to change all (docs/admin/permissions.md)");
}

// Ends what a killed self-test has left, and refuses where another one runs.
Result<void> check_rules(const ProxyState& state, TestedProxy& proxy, const Means& means) {
  for (const LiveRule& rule : state.rules) {
    const std::optional<LoadProcess> owner = owner_of(rule.condition);
    if (!owner || !means.has_ended(*owner)) {
      return fail(fmt::format(
          "another self-test runs here: rule {} is of {}; if that has been killed, its rules end "
          "by "
          "themselves, or at once by vpfsctl selftest --clean",
          rule.name,
          owner ? fmt::format("process {} of {}", owner->pid, owner->host) : "another program"));
    }
    VPFS_TRY(proxy.stop_rule(rule.name));
  }
  return {};
}

class Run {
 public:
  Run(const Settings& settings, TestedProxy& proxy, const Means& means)
      : settings_(settings), proxy_(proxy), means_(means), rules_(settings, proxy, means.clock) {}

  [[nodiscard]] Result<Record> all();

 private:
  [[nodiscard]] Result<void> look();
  [[nodiscard]] std::vector<Phase> phases();
  [[nodiscard]] Result<void> measure(const Phase& phase);
  [[nodiscard]] Result<void> check_load(const Phase& phase, const load::RunResult& result) const;
  [[nodiscard]] Result<void> check_path(const Phase& phase, const ProxyState& before,
                                        const ProxyState& after) const;
  [[nodiscard]] Result<void> check_others(const Rates& others, const Measurement& own) const;
  [[nodiscard]] double most_written(const Phase& phase) const;
  [[nodiscard]] BytesPerSecond limit_of(const Phase& phase) const;

  const Settings& settings_;
  TestedProxy& proxy_;
  const Means& means_;
  HeldRules rules_;
  Record record_;
};

// Watches the proxy for a moment.
Result<void> Run::look() {
  Result<ProxyState> first = proxy_.state();
  VPFS_TRY(first);
  VPFS_TRY(check_state(*first));
  VPFS_TRY(check_rules(*first, proxy_, means_));
  means_.pause(kLook);
  Result<ProxyState> second = proxy_.state();
  VPFS_TRY(second);
  const Rates others = rates(first->others, second->others, second->at - first->at);
  record_.proxy = std::move(*second);
  if (settings_.busy || (others.bytes < kBusyBytes && others.requests < kBusyRequests)) return {};
  return fail(
      fmt::format("{} is busy: others do {}; a self-test takes the whole server. Come back "
                  "when it is idle, or give --busy --share RATE",
                  record_.proxy.name, in_words(others)));
}

std::vector<Phase> Run::phases() {
  const std::string& policy = record_.proxy.policy;
  const bool weights = policy == "sfq" || policy == "tbf" || policy == "adaptbf";
  const bool limits = policy == "sfq" || policy == "tbf";
  if (!weights) record_.no_weights = fmt::format("the policy {} has no weights", policy);
  if (!limits) record_.no_limit = fmt::format("the policy {} has no limits", policy);
  PlanInput input = {.time = settings_.time,
                     .direct = !settings_.direct.empty(),
                     .shared = settings_.share.has_value(),
                     .size = settings_.size,
                     .proxy_depth = record_.proxy.depth_requests,
                     .weights = weights,
                     .limits = limits};
  if (settings_.share) {
    // What is in flight at the end of a measurement has to be waited for.
    const std::uint64_t each_second = settings_.share->count / settings_.size.count;
    input.most_in_flight = std::clamp<std::uint64_t>(each_second, 2, input.most_in_flight);
  }
  return plan(input);
}

// MiB/s of such requests in a measurement before.
double Run::most_written(const Phase& phase) const {
  double most = 0;
  for (const Measurement& each : record_.measurements) {
    const bool counts = each.phase.size == phase.size && !each.phase.reads;
    if (counts) most = std::max(most, each.mib_per_second());
  }
  return most;
}

// Half of what was got before.
BytesPerSecond Run::limit_of(const Phase& phase) const {
  if (phase.purpose != Purpose::limit) return {};
  const auto half = static_cast<std::uint64_t>(most_written(phase) / 2 * static_cast<double>(kMiB));
  const std::uint64_t share = settings_.share ? settings_.share->count / 2 : half;
  // In whole KiB, as people would write it.
  return {std::max(std::min(half, share) / kKiB, std::uint64_t{1}) * kKiB};
}

Result<void> Run::check_load(const Phase& phase, const load::RunResult& result) const {
  if (result.ended_early || means_.stopped()) return fail("stopped by a signal");
  std::uint64_t errors = 0;
  for (const load::Meter::Totals& each : result.totals) errors += each.errors;
  if (errors == 0) return {};
  return fail(
      fmt::format("{}: {} requests failed; the log above has the first", to_text(phase), errors));
}

Result<void> Run::check_path(const Phase& phase, const ProxyState& before,
                             const ProxyState& after) const {
  const std::uint64_t seen = done_between(before.own, after.own).requests;
  if (phase.path == Path::direct && seen > 0) {
    return fail(fmt::format("--direct {} leads through the proxy too: it saw {} of the requests",
                            settings_.direct, seen));
  }
  if (phase.path == Path::proxy && seen == 0) {
    return fail(
        fmt::format("{} saw no request of the load: --on {} does not lead through it, or "
                    "the files are on other servers (--server ALIAS)",
                    record_.proxy.name, settings_.on));
  }
  return {};
}

Result<void> Run::check_others(const Rates& others, const Measurement& own) const {
  if (settings_.busy) return {};
  const double bytes = own.mib_per_second() * static_cast<double>(kMiB) * kBesidePart;
  const double requests = own.requests_per_second() * kBesidePart;
  if (others.bytes < std::max(bytes, kBusyBytes) &&
      others.requests < std::max(requests, kBusyRequests)) {
    return {};
  }
  return fail(
      fmt::format("others have begun to use the server: {}; the self-test has ended, so "
                  "that it is not in their way",
                  in_words(others)));
}

Result<void> Run::measure(const Phase& phase) {
  const BytesPerSecond limit = limit_of(phase);
  VPFS_TRY(rules_.set(phase, limit));
  Result<ProxyState> before = proxy_.state();
  VPFS_TRY(before);
  const Result<load::RunResult> result = means_.load(load_of(settings_, phase, record_.proxy.name));
  VPFS_TRY(result);
  Result<ProxyState> after = proxy_.state();
  VPFS_TRY(after);
  VPFS_TRY(check_load(phase, *result));
  VPFS_TRY(check_path(phase, *before, *after));
  Measurement measurement = measured(phase, *result);
  measurement.limit = limit;
  const Rates others = rates(before->others, after->others, after->at - before->at);
  measurement.others_per_second = others.bytes;
  VPFS_TRY(check_others(others, measurement));
  if (phase.purpose == Purpose::check) return {};
  means_.say(to_text(measurement));
  record_.measurements.push_back(std::move(measurement));
  return {};
}

Result<Record> Run::all() {
  VPFS_TRY(look());
  VPFS_TRY(rules_.start(means_.self));
  for (const Phase& phase : phases()) {
    if (means_.stopped()) return fail("stopped by a signal");
    if (phase.purpose == Purpose::limit && most_written(phase) <= 0) {
      record_.no_limit = "no write ended before, so there is no rate to take half of";
      continue;
    }
    VPFS_TRY(measure(phase));
  }
  VPFS_TRY(rules_.end());
  return std::move(record_);
}

}  // namespace

Result<Record> run(const Settings& settings, TestedProxy& proxy, const Means& means) {
  return Run(settings, proxy, means).all();
}

Result<std::size_t> end_rules(TestedProxy& proxy,
                              const std::function<bool(const LoadProcess&)>& is_running) {
  const Result<ProxyState> state = proxy.state();
  VPFS_TRY(state);
  for (const LiveRule& rule : state->rules) {
    const std::optional<LoadProcess> owner = owner_of(rule.condition);
    if (!owner || !is_running(*owner)) continue;
    return fail(fmt::format("a self-test runs here, process {} of {}: end it first, as by kill {}",
                            owner->pid, owner->host, owner->pid));
  }
  for (const LiveRule& rule : state->rules) VPFS_TRY(proxy.stop_rule(rule.name));
  return state->rules.size();
}

}  // namespace vpfs::selftest
