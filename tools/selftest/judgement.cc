#include "tools/selftest/judgement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tools/selftest/plan.h"
#include "tools/selftest/verdict.h"

namespace vpfs::selftest {
namespace {

constexpr double kMiBytes = static_cast<double>(kMiB);
constexpr double kNearlyAll = 0.95;
constexpr double kTolerated = 0.05;   // of a share or a limit
constexpr double kTooCoarse = 0.25;   // theory allows so much: too few requests have ended
constexpr double kAtShare = 0.95;     // of the share, which then decides instead of the weights
constexpr Bytes kBurst = {3 * kMiB};  // of a rule that says nothing of it
constexpr double kDepthTime = 0.015;  // seconds that depth.bytes is worth (docs/admin/sizing.md)

std::vector<DepthRow> depths_of(const Record& record) {
  std::map<std::uint64_t, DepthRow> rows;
  for (const Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::depth) continue;
    DepthRow& row = rows[each.phase.in_flight];
    row.in_flight = each.phase.in_flight;
    (each.phase.reads ? row.read : row.write) = each.mib_per_second();
    (each.phase.reads ? row.read_p99 : row.write_p99) = each.applications[0].p99;
  }
  std::vector<DepthRow> depths;
  for (const auto& [in_flight, row] : rows) depths.push_back(row);
  return depths;
}

// The second largest: the largest of some measurements is mostly one that was lucky.
double most(const std::vector<DepthRow>& rows, double DepthRow::*rate) {
  std::vector<double> rates;
  for (const DepthRow& each : rows) rates.push_back(each.*rate);
  std::ranges::sort(rates, std::greater());
  return rates.size() > 1 ? rates[1] : rates[0];
}

// The least number of requests in flight that gives nearly all.
std::uint64_t enough(const std::vector<DepthRow>& rows, double DepthRow::*rate) {
  const double all = most(rows, rate);
  for (const DepthRow& each : rows) {
    if (each.*rate >= kNearlyAll * all) return each.in_flight;
  }
  return rows.back().in_flight;
}

std::optional<CostFit> costs_of(const Record& record) {
  std::vector<CostPoint> points;
  for (const Measurement& each : record.measurements) {
    const Phase& phase = each.phase;
    const bool is_of_depth = phase.purpose == Purpose::depth && phase.in_flight == kCostDepth;
    if (!is_of_depth && phase.purpose != Purpose::cost) continue;
    points.push_back({.reads = phase.reads,
                      .size = phase.size,
                      .requests_per_second = each.requests_per_second()});
  }
  const auto is_idle = [](const CostPoint& each) { return each.requests_per_second <= 0; };
  if (std::ranges::any_of(points, is_idle)) return std::nullopt;
  return fit_costs(points);
}

std::optional<DepthAdvice> depth_of(const Record& record, const Findings& findings) {
  if (findings.depths.empty()) return std::nullopt;
  DepthAdvice advice;
  const std::vector<DepthRow>& rows = findings.depths;
  if (most(rows, &DepthRow::read) <= 0 || most(rows, &DepthRow::write) <= 0) return std::nullopt;
  advice.enough = std::max(enough(rows, &DepthRow::read), enough(rows, &DepthRow::write));
  advice.of = std::max(most(rows, &DepthRow::read), most(rows, &DepthRow::write));
  advice.requests = 2 * advice.enough;
  Bytes size = {};
  for (const Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::depth) continue;
    size = each.phase.size;
    const bool through = each.phase.path == Path::proxy;
    advice.is_bound = through && advice.enough >= record.proxy.depth_requests;
  }
  // It must not hold back what the requests are needed for.
  const double per_request = findings.costs ? findings.costs->per_request : 0;
  const double needed =
      static_cast<double>(advice.enough) * (static_cast<double>(size.count) + per_request);
  const double bytes = std::max(advice.of * kMiBytes * kDepthTime, needed);
  advice.bytes = {static_cast<std::uint64_t>(std::ceil(bytes / kMiBytes)) * kMiB};
  return advice;
}

// SFQ(D): |W_a/w_a - W_b/w_b| <= (D+1)(c_a/w_a + c_b/w_b), and as much again for the requests whose
// answers are on the way at both ends (docs/schedulers.md).
RatioFinding ratio_of(const Record& record, const Measurement& measurement,
                      std::optional<BytesPerSecond> share) {
  const std::vector<unsigned>& weights = measurement.phase.weights;
  RatioFinding finding = {.wanted = weights[0] / weights[1], .not_judged = ""};
  const auto first = static_cast<double>(measurement.applications[0].bytes);
  const auto second = static_cast<double>(measurement.applications[1].bytes);
  const auto size = static_cast<double>(measurement.phase.size.count);
  const auto depth = static_cast<double>(record.proxy.depth_requests + 1);
  const double lag = 2 * depth * size * (1.0 / weights[0] + 1.0 / weights[1]);
  if (second <= 0 || first <= 0) {
    finding.one_got_nothing = std::max(first / weights[0], second / weights[1]) > lag;
    if (finding.one_got_nothing) {
      finding.error = -1;
      finding.allowed = kTolerated;
    } else {
      finding.not_judged = "an application got nothing in the time that was measured";
    }
    return finding;
  }
  finding.got = first / second;
  finding.error = finding.got / finding.wanted - 1;
  finding.allowed = std::max(kTolerated, lag / std::min(first / weights[0], second / weights[1]));
  finding.holds = std::abs(finding.error) <= finding.allowed;
  if (share &&
      measurement.mib_per_second() * kMiBytes >= kAtShare * static_cast<double>(share->count)) {
    finding.not_judged = "both reached the share that the self-test was given, so limits decided";
  } else if (finding.allowed > kTooCoarse) {
    finding.not_judged = "too few requests ended: give it more --minutes";
  }
  return finding;
}

LimitFinding limit_of(const Measurement& measurement) {
  LimitFinding finding;
  finding.wanted = static_cast<double>(measurement.limit.count) / kMiBytes;
  finding.got = measurement.mib_per_second();
  finding.error = finding.got / finding.wanted - 1;
  // What the bucket may have at the beginning, and requests on the way at both ends.
  const std::uint64_t more = kBurst.count + 2 * measurement.phase.size.count;
  const double edge = static_cast<double>(more) / (static_cast<double>(measurement.limit.count) *
                                                   in_seconds(measurement.length));
  finding.holds = std::abs(finding.error) <= std::max(kTolerated, edge);
  finding.is_judged = edge <= kTooCoarse;
  return finding;
}

std::optional<PathFinding> path_of(const Record& record) {
  PathFinding finding;
  int seen = 0;
  for (const Measurement& each : record.measurements) {
    if (each.phase.purpose != Purpose::path_cost) continue;
    const bool direct = each.phase.path == Path::direct;
    if (each.applications[0].requests == 0) return std::nullopt;
    ++seen;
    // The means of two.
    if (each.phase.in_flight == 1) {
      (direct ? finding.direct : finding.proxy) += each.applications[0].median / 2;
    } else {
      (direct ? finding.direct_rate : finding.proxy_rate) += each.mib_per_second() / 2;
    }
  }
  if (seen == 0) return std::nullopt;
  return finding;
}

}  // namespace

bool Findings::good() const {
  return std::ranges::none_of(
      verdict, [](const VerdictLine& line) { return line.kind == VerdictLine::Kind::bad; });
}

Findings judge(const Record& record, std::optional<BytesPerSecond> share) {
  Findings findings;
  findings.depths = depths_of(record);
  // What a share holds back says nothing of the server.
  if (!share) {
    findings.costs = costs_of(record);
    findings.depth = depth_of(record, findings);
  }
  for (const Measurement& each : record.measurements) {
    if (each.phase.purpose == Purpose::weights) {
      findings.ratios.push_back(ratio_of(record, each, share));
    }
    if (each.phase.purpose == Purpose::limit) findings.limit = limit_of(each);
  }
  findings.path = path_of(record);
  findings.verdict = verdict(record, findings, share.has_value());
  return findings;
}

}  // namespace vpfs::selftest
