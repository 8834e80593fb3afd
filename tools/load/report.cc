#include "tools/load/report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"

namespace vpfs::load {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}
double mebibytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kMiB);
}
// 0 of no time at all.
double rate(double amount, Duration duration) {
  return duration > Duration::zero() ? amount / in_seconds(duration) : 0;
}

double per_second(std::uint64_t count, Duration duration) {
  return rate(static_cast<double>(count), duration);
}

Json settings_json(const ApplicationSettings& application) {
  Json json = {{"name", application.name},
               {"jobid", application.jobid},
               {"uid", application.uid},
               {"processes", application.processes},
               {"connections", application.connections},
               {"outstanding", application.outstanding},
               {"size", application.size.count},
               {"read_percent", application.read_percent},
               {"pattern", application.pattern == Pattern::random ? "random" : "sequential"},
               {"file_size", application.file_size.count},
               {"datafiles", application.datafiles},
               {"start_s", in_seconds(application.start)}};
  if (!application.node.empty()) json["node"] = application.node;
  if (!application.servers.empty()) json["servers"] = application.servers;
  if (application.amount.count > 0) json["amount"] = application.amount.count;
  if (application.stop) json["stop_s"] = in_seconds(*application.stop);
  if (application.think > Duration::zero()) json["think_s"] = in_seconds(application.think);
  if (application.burst) {
    json["burst"] = {{"length_s", in_seconds(application.burst->length)},
                     {"interval_s", in_seconds(application.burst->interval)}};
  }
  return json;
}

Json settings_json(const LoadSettings& settings) {
  Json json = {{"file_system", settings.file_system},
               {"directory", settings.directory},
               {"duration_s", in_seconds(settings.duration)},
               {"warm_up_s", in_seconds(settings.warm_up)},
               {"interval_s", in_seconds(settings.interval)},
               {"until_done", settings.until_done},
               {"verify", settings.verify},
               {"keep_files", settings.keep_files},
               {"seed", settings.seed},
               {"threads", settings.threads},
               {"uid", settings.uid},
               {"gid", settings.gid},
               {"applications", Json::array()}};
  for (const ApplicationSettings& each : settings.applications) {
    json["applications"].push_back(settings_json(each));
  }
  return json;
}

Json latency_json(const LatencyHistogram& latency) {
  Json histogram = Json::array();
  for (const LatencyHistogram::Bucket& bucket : latency.buckets()) {
    histogram.push_back({microseconds(bucket.upper), bucket.count});
  }
  return {{"mean", microseconds(latency.mean())},
          {"p50", microseconds(latency.quantile(0.5))},
          {"p90", microseconds(latency.quantile(0.9))},
          {"p99", microseconds(latency.quantile(0.99))},
          {"p999", microseconds(latency.quantile(0.999))},
          {"max", microseconds(latency.max())},
          {"histogram", std::move(histogram)}};
}

Json timeline_json(const LoadSettings& settings, Duration duration,
                   const std::vector<Meter::Bin>& bins) {
  Json timeline = Json::array();
  Duration begin = Duration::zero();
  for (const Meter::Bin& bin : bins) {
    const Duration end = std::min(begin + settings.interval, duration);
    timeline.push_back({{"t", in_seconds(end)},
                        {"mib_per_s", rate(mebibytes(bin.bytes), end - begin)},
                        {"ops_per_s", per_second(bin.requests, end - begin)},
                        {"longest_us", microseconds(bin.longest)}});
    begin = end;
  }
  return timeline;
}

}  // namespace

bool RunResult::good() const {
  return std::all_of(totals.begin(), totals.end(), [](const Meter::Totals& each) {
    return each.errors == 0 && each.verify_failures == 0;
  });
}

std::string to_json(const LoadSettings& settings, const RunResult& result) {
  Json applications = Json::array();
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  for (std::size_t i = 0; i < result.totals.size(); ++i) {
    const Meter::Totals& total = result.totals[i];
    bytes += total.bytes;
    requests += total.requests;
    applications.push_back({{"name", settings.applications[i].name},
                            {"jobid", settings.applications[i].jobid},
                            {"bytes", total.bytes},
                            {"requests", total.requests},
                            {"errors", total.errors},
                            {"verified_blocks", total.verified_blocks},
                            {"verify_failures", total.verify_failures},
                            {"mib_per_s", rate(mebibytes(total.bytes), result.duration)},
                            {"ops_per_s", per_second(total.requests, result.duration)},
                            {"last_s", in_seconds(total.last)},
                            {"latency_us", latency_json(total.latency)},
                            {"timeline", timeline_json(settings, result.duration, total.bins)}});
  }
  const Json json = {{"settings", settings_json(settings)},
                     {"duration_s", in_seconds(result.duration)},
                     {"ended_early", result.ended_early},
                     {"cpu_seconds", {{"user", result.cpu.user}, {"system", result.cpu.system}}},
                     {"applications", std::move(applications)},
                     {"total_mib_per_s", rate(mebibytes(bytes), result.duration)},
                     {"total_ops_per_s", per_second(requests, result.duration)}};
  return json_text(json, 2) + "\n";
}

std::string to_table(const LoadSettings& settings, const RunResult& result) {
  std::string text =
      fmt::format("{:<20} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8} {:>10}\n", "application", "MiB/s",
                  "op/s", "p50 us", "p99 us", "max us", "errors", "verified");
  const auto out = std::back_inserter(text);
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  for (std::size_t i = 0; i < result.totals.size(); ++i) {
    const Meter::Totals& total = result.totals[i];
    bytes += total.bytes;
    requests += total.requests;
    fmt::format_to(out, "{:<20} {:>10.1f} {:>10.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>8} {:>10}\n",
                   settings.applications[i].name, rate(mebibytes(total.bytes), result.duration),
                   per_second(total.requests, result.duration),
                   microseconds(total.latency.quantile(0.5)),
                   microseconds(total.latency.quantile(0.99)), microseconds(total.latency.max()),
                   total.errors + total.verify_failures, total.verified_blocks);
  }
  fmt::format_to(out, "{:<20} {:>10.1f} {:>10.0f}   ({:.2f} s of CPU time)\n", "total",
                 rate(mebibytes(bytes), result.duration), per_second(requests, result.duration),
                 result.cpu.user + result.cpu.system);
  return text;
}

std::string live_line(const LoadSettings& settings, const std::vector<Meter::Live>& before,
                      const std::vector<Meter::Live>& now, Duration time, Duration elapsed) {
  std::string text = fmt::format("{:6.1f} s", in_seconds(time));
  const auto out = std::back_inserter(text);
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::uint64_t new_bytes = now[i].bytes - before[i].bytes;
    const std::uint64_t new_requests = now[i].requests - before[i].requests;
    bytes += new_bytes;
    requests += new_requests;
    fmt::format_to(out, "  {} {:.1f} MiB/s {:.0f} op/s", settings.applications[i].name,
                   mebibytes(new_bytes) / in_seconds(elapsed), per_second(new_requests, elapsed));
    const std::uint64_t bad = now[i].errors + now[i].verify_failures;
    if (bad > 0) fmt::format_to(out, " ({} errors)", bad);
  }
  fmt::format_to(out, "  total {:.1f} MiB/s {:.0f} op/s", mebibytes(bytes) / in_seconds(elapsed),
                 per_second(requests, elapsed));
  return text;
}

}  // namespace vpfs::load
