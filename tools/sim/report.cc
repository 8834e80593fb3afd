#include "tools/sim/report.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "control/words/printable.h"
#include "tools/sim/entitlements.h"
#include "tools/sim/text_table.h"

namespace vpfs::sim_tool {
namespace {

using Json = nlohmann::ordered_json;
using sim::ApplicationResult;

double microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}
double mib_per_second(Bytes moved, Duration time) {
  return static_cast<double>(moved.count) / static_cast<double>(kMiB) / in_seconds(time);
}
double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

bool contains(const auto& texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

std::uint64_t moved_by_all(const FinishedRun& run) {
  std::uint64_t sum = 0;
  for (const ApplicationResult& each : run.result.applications) sum += each.moved.count;
  return sum;
}

std::string time_text(const LatencyHistogram& times, double quantile) {
  return times.count() == 0 ? "-" : fmt::format("{:.0f}", microseconds(times.quantile(quantile)));
}

std::string rate_text(const FinishedRun& run, const ApplicationResult& application) {
  return fmt::format("{:.1f}", mib_per_second(application.moved, run.scenario.duration));
}

std::string coordinator_text(const sim::Scenario& scenario) {
  if (!scenario.coordinator) return "";
  return fmt::format(", coordinator {} every {}", scenario.coordinator->policy->name,
                     to_string(scenario.coordinator->period));
}

std::string heading(const FinishedRun& run) {
  const sim::Scenario& scenario = run.scenario;
  return fmt::format(
      "{}: policy {}{}, {} {} of {}, {} a request, {} at once; {} after {} of warm-up, seed {}\n",
      words::printable(run.name), run.policy, coordinator_text(scenario), scenario.servers,
      scenario.servers == 1 ? "server" : "servers", to_string(scenario.device.bandwidth),
      to_string(scenario.device.per_request), scenario.device.parallelism,
      to_string(scenario.duration), to_string(scenario.warm_up), scenario.seed);
}

Json times_json(const LatencyHistogram& times) {
  return {{"mean", microseconds(times.mean())},
          {"p50", microseconds(times.quantile(0.5))},
          {"p99", microseconds(times.quantile(0.99))},
          {"max", microseconds(times.max())}};
}

// `all`: bytes that were moved.
Json application_json(const FinishedRun& run, const ApplicationResult& application, Bytes entitled,
                      std::uint64_t all) {
  Json course = Json::array();
  for (std::size_t i = 0; i < application.course.size(); ++i) {
    course.push_back(mib_per_second(application.course[i], interval_length(run, i)));
  }
  return {{"name", application.name},
          {"virtual_pfs", application.virtual_pfs},
          {"weight", application.promise.weight},
          {"bytes", application.moved.count},
          {"requests", application.requests},
          {"mib_per_s", mib_per_second(application.moved, run.scenario.duration)},
          {"share_percent", percent(application.moved.count, all)},
          {"entitled_percent", percent(entitled.count, all)},
          {"wait_us", times_json(application.held)},
          {"latency_us", times_json(application.latency)},
          {"course_mib_per_s", std::move(course)}};
}

}  // namespace

Duration interval_length(const FinishedRun& run, std::size_t interval) {
  const Duration begin = run.scenario.interval * static_cast<std::int64_t>(interval);
  return std::min(run.scenario.interval, run.scenario.duration - begin);
}

std::string to_table(const FinishedRun& run) {
  TextTable table({"application", "virtual PFS", ">MiB/s", ">share %", ">entitled %", ">requests/s",
                   ">wait p50 us", ">wait p99 us", ">latency p50 us", ">latency p99 us"});
  const std::uint64_t all = moved_by_all(run);
  const Entitlements entitlements(run);
  for (std::size_t i = 0; i < run.result.applications.size(); ++i) {
    const ApplicationResult& each = run.result.applications[i];
    table.add({each.name, each.virtual_pfs.empty() ? "-" : each.virtual_pfs, rate_text(run, each),
               fmt::format("{:.1f}", percent(each.moved.count, all)),
               fmt::format("{:.1f}", percent(entitlements.in_all(i).count, all)),
               fmt::format("{:.0f}",
                           static_cast<double>(each.requests) / in_seconds(run.scenario.duration)),
               time_text(each.held, 0.5), time_text(each.held, 0.99), time_text(each.latency, 0.5),
               time_text(each.latency, 0.99)});
  }
  return heading(run) + table.text() +
         fmt::format("all together {:.1f} MiB/s\n",
                     mib_per_second(Bytes{all}, run.scenario.duration));
}

std::string to_comparison(const FinishedRun& before, const FinishedRun& after) {
  TextTable table({"application", ">MiB/s A", ">MiB/s B", ">B/A", ">share % A", ">share % B",
                   ">wait p99 us A", ">wait p99 us B", ">latency p99 us A", ">latency p99 us B"});
  const auto find = [](const FinishedRun& run,
                       const std::string& name) -> const ApplicationResult* {
    const auto found = std::ranges::find(run.result.applications, name, &ApplicationResult::name);
    return found == run.result.applications.end() ? nullptr : &*found;
  };
  std::vector<std::string> names;
  for (const FinishedRun* const run : {&before, &after}) {
    for (const ApplicationResult& each : run->result.applications) {
      if (!contains(names, each.name)) names.push_back(each.name);
    }
  }
  const std::uint64_t all_before = moved_by_all(before);
  const std::uint64_t all_after = moved_by_all(after);
  for (const std::string& name : names) {
    const ApplicationResult* const a = find(before, name);
    const ApplicationResult* const b = find(after, name);
    const auto cell = [](const ApplicationResult* application, const auto& text) {
      return application == nullptr ? std::string("-") : text(*application);
    };
    const auto share = [](std::uint64_t all) {
      return [all](const ApplicationResult& each) {
        return fmt::format("{:.1f}", percent(each.moved.count, all));
      };
    };
    const auto wait = [](const ApplicationResult& each) { return time_text(each.held, 0.99); };
    const auto latency = [](const ApplicationResult& each) {
      return time_text(each.latency, 0.99);
    };
    std::string ratio = "-";
    if (a != nullptr && b != nullptr && a->moved.count > 0) {
      ratio = fmt::format("{:.2f}", mib_per_second(b->moved, after.scenario.duration) /
                                        mib_per_second(a->moved, before.scenario.duration));
    }
    table.add({name, cell(a, [&](const auto& each) { return rate_text(before, each); }),
               cell(b, [&](const auto& each) { return rate_text(after, each); }), ratio,
               cell(a, share(all_before)), cell(b, share(all_after)), cell(a, wait), cell(b, wait),
               cell(a, latency), cell(b, latency)});
  }
  return "A: " + heading(before) + "B: " + heading(after) + table.text() +
         fmt::format("all together A {:.1f} MiB/s, B {:.1f} MiB/s\n",
                     mib_per_second(Bytes{all_before}, before.scenario.duration),
                     mib_per_second(Bytes{all_after}, after.scenario.duration));
}

std::string to_json(std::span<const FinishedRun> runs) {
  Json all = Json::array();
  for (const FinishedRun& run : runs) {
    Json json = {{"scenario", run.name},
                 {"policy", run.policy},
                 {"servers", run.scenario.servers},
                 {"duration_s", in_seconds(run.scenario.duration)},
                 {"warm_up_s", in_seconds(run.scenario.warm_up)},
                 {"interval_s", in_seconds(run.scenario.interval)},
                 {"seed", run.scenario.seed},
                 {"events", run.result.events},
                 {"applications", Json::array()}};
    const std::uint64_t moved = moved_by_all(run);
    const Entitlements entitlements(run);
    for (std::size_t i = 0; i < run.result.applications.size(); ++i) {
      json["applications"].push_back(
          application_json(run, run.result.applications[i], entitlements.in_all(i), moved));
    }
    all.push_back(std::move(json));
  }
  return json_text(all, 2) + "\n";
}

}  // namespace vpfs::sim_tool
