#include "tools/selftest/report.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "tools/selftest/phase_text.h"
#include "tools/selftest/verdict.h"
#include "tools/sim/text_table.h"

namespace vpfs::selftest {
namespace {

using Json = nlohmann::ordered_json;
using Kind = VerdictLine::Kind;

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::good:
      return "good";
    case Kind::bad:
      return "BAD";
    case Kind::unknown:
      return "?";
    case Kind::note:
      break;
  }
  return "-";
}

std::string_view name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::check:
      return "check";
    case Purpose::depth:
      return "depth";
    case Purpose::cost:
      return "cost";
    case Purpose::path_cost:
      return "proxy";
    case Purpose::weights:
      return "weights";
    case Purpose::limit:
      break;
  }
  return "limit";
}

std::string depth_table(const Findings& findings) {
  sim_tool::TextTable table({">IN FLIGHT", ">READ MiB/s", ">p99 ms", ">WRITE MiB/s", ">p99 ms"});
  for (const DepthRow& row : findings.depths) {
    table.add({fmt::format("{}", row.in_flight), fmt::format("{:.1f}", row.read),
               fmt::format("{:.2f}", milliseconds(row.read_p99)), fmt::format("{:.1f}", row.write),
               fmt::format("{:.2f}", milliseconds(row.write_p99))});
  }
  return table.text();
}

// In lines of a terminal's width, below each other.
std::string folded(std::string_view text) {
  constexpr std::size_t kLine = 84;
  std::string lines;
  while (text.size() > kLine) {
    const std::size_t blank = text.rfind(' ', kLine);
    if (blank == std::string_view::npos) break;
    lines += fmt::format("{}\n      ", text.substr(0, blank));
    text.remove_prefix(blank + 1);
  }
  return lines + std::string(text);
}

Json to_json(const Measurement& measurement) {
  const Phase& phase = measurement.phase;
  Json applications = Json::array();
  for (std::size_t i = 0; i < measurement.applications.size(); ++i) {
    const Got& got = measurement.applications[i];
    applications.push_back({{"bytes", got.bytes},
                            {"requests", got.requests},
                            {"mib_per_s", measurement.mib_per_second(i)},
                            {"p50_ms", milliseconds(got.median)},
                            {"p99_ms", milliseconds(got.p99)}});
  }
  Json json = {{"for", name_of(phase.purpose)},
               {"path", phase.path == Path::direct ? "direct" : "proxy"},
               {"kind", phase.reads ? "read" : "write"},
               {"size", phase.size.count},
               {"in_flight", phase.in_flight},
               {"duration_s", in_seconds(measurement.length)},
               {"mib_per_s", measurement.mib_per_second()},
               {"requests_per_s", measurement.requests_per_second()},
               {"processors", measurement.processors},
               {"others_bytes_per_s", measurement.others_per_second}};
  if (!phase.weights.empty()) json["weights"] = phase.weights;
  if (measurement.limit.count > 0) json["limit_bytes_per_s"] = measurement.limit.count;
  json["applications"] = std::move(applications);
  return json;
}

Json findings_json(const Findings& findings) {
  Json json = {{"good", findings.good()}, {"shares", Json::array()}};
  for (const RatioFinding& each : findings.ratios) {
    Json ratio = {{"wanted", each.wanted},
                  {"got", each.got},
                  {"error", each.error},
                  {"allowed", each.allowed},
                  {"holds", each.not_judged.empty() ? Json(each.holds) : Json(nullptr)}};
    if (!each.not_judged.empty()) ratio["not_judged"] = each.not_judged;
    json["shares"].push_back(std::move(ratio));
  }
  if (const auto& limit = findings.limit) {
    json["limit"] = {{"wanted_mib_per_s", limit->wanted},
                     {"got_mib_per_s", limit->got},
                     {"error", limit->error},
                     {"holds", limit->is_judged ? Json(limit->holds) : Json(nullptr)}};
  }
  if (const auto& path = findings.path) {
    json["proxy"] = {{"direct_ms", milliseconds(path->direct)},
                     {"proxy_ms", milliseconds(path->proxy)},
                     {"direct_mib_per_s", path->direct_rate},
                     {"proxy_mib_per_s", path->proxy_rate}};
  }
  if (const auto& depth = findings.depth) {
    json["depth"] = {{"enough", depth->enough},
                     {"most_mib_per_s", depth->of},
                     {"requests", depth->requests},
                     {"bytes", depth->bytes.count},
                     {"bound_by_proxy", depth->is_bound}};
  }
  if (const auto& costs = findings.costs) {
    json["cost"] = {{"per_request", costs->per_request},
                    {"write_factor", costs->write_factor},
                    {"worst_error", costs->worst_error}};
  }
  Json verdict = Json::array();
  for (const VerdictLine& line : findings.verdict) {
    verdict.push_back({{"kind", line.kind == Kind::bad       ? "bad"
                                : line.kind == Kind::unknown ? "unknown"
                                : line.kind == Kind::note    ? "note"
                                                             : "good"},
                       {"text", line.text}});
  }
  json["verdict"] = std::move(verdict);
  return json;
}

}  // namespace

std::string to_words(const Settings& settings, const Record& record, const Findings& findings) {
  std::string text =
      fmt::format("\nself-test of {}: policy {}, depth {}, {}\n", record.proxy.name,
                  record.proxy.policy, record.proxy.depth_requests, to_string(settings.time));
  if (!findings.depths.empty()) {
    text += fmt::format("\nrequests of {}, {}\n{}", to_string(settings.size),
                        settings.direct.empty() ? "through the proxy" : "direct",
                        depth_table(findings));
  }
  text += "\n";
  for (const VerdictLine& line : findings.verdict) {
    text += fmt::format("{:<5} {}\n", name_of(line.kind), folded(line.text));
  }
  return text;
}

std::string to_json(const Settings& settings, const Record& record, const Findings& findings) {
  Json measurements = Json::array();
  for (const Measurement& each : record.measurements) measurements.push_back(to_json(each));
  Json json = {{"proxy",
                {{"name", record.proxy.name},
                 {"policy", record.proxy.policy},
                 {"depth_requests", record.proxy.depth_requests}}},
               {"settings",
                {{"on", settings.on},
                 {"direct", settings.direct},
                 {"directory", settings.directory},
                 {"time_s", in_seconds(settings.time)},
                 {"size", settings.size.count},
                 {"busy", settings.busy}}},
               {"findings", findings_json(findings)},
               {"measurements", std::move(measurements)}};
  if (settings.share) json["settings"]["share_bytes_per_s"] = settings.share->count;
  return json_text(json, 2) + "\n";
}

}  // namespace vpfs::selftest
