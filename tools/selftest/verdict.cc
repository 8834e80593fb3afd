#include "tools/selftest/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::selftest {
namespace {

using Kind = VerdictLine::Kind;

constexpr double kBadModel = 0.25;
constexpr double kBusyLoad = 1.8;  // of its two threads
constexpr std::string_view kIdle = "no request ended in a measurement: give it more --minutes";

// Whether nothing ended in a measurement of this kind.
bool has_idle(const Record& record, std::initializer_list<Purpose> purposes) {
  return std::ranges::any_of(record.measurements, [&](const Measurement& each) {
    return std::ranges::find(purposes, each.phase.purpose) != purposes.end() &&
           each.requests_per_second() <= 0;
  });
}

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Why shares may not have held although the proxy did what it had to.
std::string other_reason(const Record& record) {
  double processors = 0;
  for (const Measurement& each : record.measurements) {
    if (each.phase.purpose == Purpose::weights) processors = std::max(processors, each.processors);
  }
  if (processors > kBusyLoad) {
    return "; the load itself was busy with its two processors, so perhaps no request waited in "
           "the proxy: start it on a faster host";
  }
  if (record.proxy.policy != "sfq") {
    return fmt::format("; the policy {} is not bound to weights at each moment",
                       record.proxy.policy);
  }
  return "; shares need requests that wait in the proxy: compare depth with the advice below, and "
         "see docs/admin/sizing.md";
}

VerdictLine line_of(const RatioFinding& ratio, const Record& record) {
  if (!ratio.not_judged.empty()) {
    return {Kind::unknown, fmt::format("{}:1 was not judged: {}", ratio.wanted, ratio.not_judged)};
  }
  if (ratio.one_got_nothing) {
    return {Kind::bad, fmt::format("{}:1 does not hold: one of the two got nothing{}", ratio.wanted,
                                   other_reason(record))};
  }
  const std::string measured =
      fmt::format("it was {:.2f}:1, which is {:.1f} % off", ratio.got, 100 * std::abs(ratio.error));
  if (ratio.holds) return {Kind::good, fmt::format("{}:1 holds: {}", ratio.wanted, measured)};
  return {Kind::bad,
          fmt::format("{}:1 does not hold: {}{}", ratio.wanted, measured, other_reason(record))};
}

VerdictLine line_of(const LimitFinding& limit) {
  if (!limit.is_judged) {
    return {Kind::unknown, fmt::format("a limit of {:.1f} MiB/s was not judged: too few requests "
                                       "ended: give it more --minutes",
                                       limit.wanted)};
  }
  const std::string measured =
      fmt::format("{:.1f} MiB/s were got, {:.1f} % {}", limit.got, 100 * std::abs(limit.error),
                  limit.error < 0 ? "less" : "more");
  return {limit.holds ? Kind::good : Kind::bad,
          fmt::format("a limit of {:.1f} MiB/s {}: {}", limit.wanted,
                      limit.holds ? "holds" : "does not hold", measured)};
}

VerdictLine line_of(const PathFinding& path) {
  const double more = microseconds(path.proxy) - microseconds(path.direct);
  std::string text = fmt::format(
      "the proxy adds {:.0f} us to a small read ({:.0f} us direct, {:.0f} us through it)", more,
      microseconds(path.direct), microseconds(path.proxy));
  if (path.direct_rate > 0) {
    const double change = 100 * (path.proxy_rate / path.direct_rate - 1);
    text +=
        fmt::format("; large reads got {:.0f} MiB/s direct and {:.0f} MiB/s through it ({:+.1f} %)",
                    path.direct_rate, path.proxy_rate, change);
  }
  return {Kind::note, std::move(text)};
}

VerdictLine line_of(const DepthAdvice& depth, const Record& record) {
  if (depth.is_bound) {
    return {Kind::unknown,
            fmt::format("depth: the proxy's own depth of {} was the bound, so the best one is not "
                        "known: measure past the proxy with --direct, or with a larger depth",
                        record.proxy.depth_requests)};
  }
  return {
      Kind::note,
      fmt::format("scheduler.depth: {}: {} requests in flight give 95 % of the most ({:.0f} "
                  "MiB/s), and twice as many keep the server busy between two of them; it is {} "
                  "now",
                  to_text(depth), depth.enough, depth.of, record.proxy.depth_requests)};
}

VerdictLine line_of(const CostFit& costs) {
  std::string text =
      fmt::format("scheduler.cost: {}: a request takes as long as so many bytes beside its own",
                  to_text(costs));
  if (costs.worst_error > kBadModel) {
    return {Kind::unknown,
            text + fmt::format("; but one size took {:.0f} % more or less than that says, so this "
                               "server does not follow the model well",
                               100 * costs.worst_error)};
  }
  return {Kind::note,
          text + fmt::format(" (within {:.0f} % for each size)", 100 * costs.worst_error)};
}

}  // namespace

std::string to_text(const DepthAdvice& advice) {
  return fmt::format("{{requests: {}, bytes: {}}}", advice.requests, to_string(advice.bytes));
}

std::string to_text(const CostFit& costs) {
  // In steps that a measurement can tell apart.
  const std::uint64_t step = costs.per_request < 16 * static_cast<double>(kKiB) ? kKiB : 4 * kKiB;
  const auto steps = std::llround(costs.per_request / static_cast<double>(step));
  return fmt::format("{{per_request: {}, write_factor: {:.1f}}}",
                     to_string(Bytes{static_cast<std::uint64_t>(steps) * step}),
                     std::max(costs.write_factor, 0.1));
}

std::vector<VerdictLine> verdict(const Record& record, const Findings& findings, bool shared) {
  std::vector<VerdictLine> lines;
  lines.reserve(findings.ratios.size());
  for (const RatioFinding& each : findings.ratios) lines.push_back(line_of(each, record));
  if (!record.no_weights.empty()) {
    lines.push_back({Kind::unknown, "shares were not measured: " + record.no_weights});
  }
  if (findings.limit) lines.push_back(line_of(*findings.limit));
  if (!record.no_limit.empty()) {
    lines.push_back({Kind::unknown, "a limit was not measured: " + record.no_limit});
  }
  if (findings.path) lines.push_back(line_of(*findings.path));
  if (!findings.path && has_idle(record, {Purpose::path_cost})) {
    lines.push_back({Kind::unknown, "what the proxy costs was not judged: " + std::string(kIdle)});
  } else if (!findings.path && !shared) {
    lines.push_back(
        {Kind::unknown, "what the proxy costs was not measured: give --direct ADDRESS"});
  }
  if (findings.depth) lines.push_back(line_of(*findings.depth, record));
  if (findings.costs) lines.push_back(line_of(*findings.costs));
  if (!findings.depth && shared) {
    lines.push_back({Kind::unknown,
                     "depth and costs were not judged: the self-test was held to a share, so the "
                     "server did not show what it can do"});
  }
  if (!findings.depth && !findings.depths.empty()) {
    lines.push_back({Kind::unknown, "depth was not judged: " + std::string(kIdle)});
  }
  if (!findings.costs && !shared && has_idle(record, {Purpose::depth, Purpose::cost})) {
    lines.push_back({Kind::unknown, "costs were not judged: " + std::string(kIdle)});
  } else if (findings.depth && !findings.costs) {
    lines.push_back({Kind::unknown,
                     "costs: larger requests took no longer, so something else than the server was "
                     "the bound"});
  }
  if (record.proxy.coordinated) {
    lines.push_back(
        {Kind::note, "a coordinator allocates here; it may have moved shares meanwhile"});
  }
  return lines;
}

}  // namespace vpfs::selftest
