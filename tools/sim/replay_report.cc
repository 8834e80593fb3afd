#include "tools/sim/replay_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "control/words/printable.h"
#include "tools/sim/text_table.h"

namespace vpfs::sim_tool {
namespace {

using Json = nlohmann::ordered_json;
using sim::ReplayedShare;
using Shares = std::vector<ReplayedShare>;

double mib_per_second(const ReplayedShare& share, Duration time) {
  return static_cast<double>(share.moved.count) / static_cast<double>(kMiB) / in_seconds(time);
}

double milliseconds(Duration time) {
  return in_seconds(time) * 1000;
}

std::uint64_t sum_of(const Shares& shares) {
  std::uint64_t sum = 0;
  for (const ReplayedShare& each : shares) sum += each.moved.count;
  return sum;
}

std::uint64_t requests_of(const Shares& shares) {
  std::uint64_t sum = 0;
  for (const ReplayedShare& each : shares) sum += each.requests;
  return sum;
}

double percent(const ReplayedShare& share, std::uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(share.moved.count) / static_cast<double>(all);
}

// A virtual PFS that may have no requests before, or after.
struct BeforeAndAfter {
  const std::string& name;
  const ReplayedShare* before;
  const ReplayedShare* after;
};

// Those that are in `after` alone at the end.
std::vector<BeforeAndAfter> pairs_of(const FinishedReplay& replay) {
  std::map<std::string_view, const ReplayedShare*> after;
  for (const ReplayedShare& each : replay.after) after.emplace(each.virtual_pfs, &each);
  std::vector<BeforeAndAfter> pairs;
  for (const ReplayedShare& each : replay.before) {
    const auto found = after.extract(each.virtual_pfs);
    pairs.push_back({each.virtual_pfs, &each, found.empty() ? nullptr : found.mapped()});
  }
  for (const ReplayedShare& each : replay.after) {
    if (after.contains(each.virtual_pfs)) pairs.push_back({each.virtual_pfs, nullptr, &each});
  }
  return pairs;
}

std::vector<std::string> cells(const ReplayedShare* share, std::uint64_t all, Duration length) {
  if (share == nullptr || share->requests == 0) return {"-", "-", "-", "-"};
  return {fmt::format("{:.1f}", mib_per_second(*share, length)),
          fmt::format("{:.1f}%", percent(*share, all)),
          fmt::format("{:.1f}", milliseconds(share->wait.mean())),
          fmt::format("{:.1f}", milliseconds(share->wait.quantile(0.99)))};
}

Json json_of(const ReplayedShare* share, std::uint64_t all, Duration length) {
  if (share == nullptr) return nullptr;
  return {{"requests", share->requests},
          {"bytes", share->moved.count},
          {"mib_per_second", mib_per_second(*share, length)},
          {"share_percent", percent(*share, all)},
          {"mean_wait_us", microseconds_of(share->wait.mean())},
          {"p99_wait_us", microseconds_of(share->wait.quantile(0.99))},
          {"mean_service_us", microseconds_of(share->service.mean())}};
}

}  // namespace

std::string to_table(const FinishedReplay& replay) {
  std::string text =
      fmt::format("{}, {:.1f} s, with {}\nThe server as it was: {}", replay.recording,
                  in_seconds(replay.length), replay.config, to_string(replay.device.bandwidth));
  if (replay.device.per_request > Duration::zero()) {
    text += fmt::format(", and {:.0f} us for each request",
                        in_seconds(replay.device.per_request) * 1e6 /
                            static_cast<double>(replay.device.parallelism));
  }
  text += "\n";
  if (!replay.not_recorded.empty()) {
    text += fmt::format(
        "The rules ask for {}, which no recording has: requests stay where they were.\n",
        fmt::join(replay.not_recorded, ", "));
  }
  if (replay.moved > 0) {
    text += fmt::format(
        "{} requests were in virtual PFSes that this configuration does not have: its rules place "
        "them by what is recorded.\n",
        replay.moved);
  }
  if (!replay.ambiguous.empty()) {
    std::vector<std::string> names;
    for (const std::string& each : replay.ambiguous) names.push_back(words::printable(each));
    text += fmt::format(
        "Rules give {} different traffic classes, exemptions or templates, by what no recording "
        "has: the first one counts.\n",
        fmt::join(names, ", "));
  }
  if (replay.names_are_full) {
    text +=
        "The recording does not tell all connections, jobs and virtual PFSes apart: there were too "
        "many.\n";
  }
  if (replay.has_one_lane) {
    text +=
        "No recording has the targets of requests: one scheduler has all of them here, and not one "
        "for each target.\n";
  }
  text += "\n";
  TextTable table({"virtual PFS", ">MiB/s", ">share", ">wait ms", ">p99", "", ">MiB/s", ">share",
                   ">wait ms", ">p99"});
  const std::uint64_t before = sum_of(replay.before);
  const std::uint64_t after = sum_of(replay.after);
  for (const BeforeAndAfter& each : pairs_of(replay)) {
    std::vector<std::string> row = {each.name.empty() ? "(others)" : words::printable(each.name)};
    for (std::string& cell : cells(each.before, before, replay.length)) {
      row.push_back(std::move(cell));
    }
    row.emplace_back("->");
    for (std::string& cell : cells(each.after, after, replay.length)) {
      row.push_back(std::move(cell));
    }
    table.add(std::move(row));
  }
  return text + table.text();
}

ShareGap largest_gap(const FinishedReplay& replay) {
  const std::uint64_t before = sum_of(replay.before);
  const std::uint64_t after = sum_of(replay.after);
  ShareGap largest;
  for (const BeforeAndAfter& each : pairs_of(replay)) {
    const ShareGap gap = {.virtual_pfs = each.name,
                          .recorded = each.before == nullptr ? 0 : percent(*each.before, before),
                          .replayed = each.after == nullptr ? 0 : percent(*each.after, after)};
    if (std::abs(gap.recorded - gap.replayed) >= std::abs(largest.recorded - largest.replayed)) {
      largest = gap;
    }
  }
  return largest;
}

double WorkGap::ratio() const {
  const double least = std::min(recorded, replayed);
  const double most = std::max(recorded, replayed);
  return least > 0 ? most / least : most > 0 ? std::numeric_limits<double>::infinity() : 1;
}

WorkGap largest_work_gap(const FinishedReplay& replay) {
  constexpr std::uint64_t kPart = 20;
  const auto rate = [&](const Shares& shares) {
    return static_cast<double>(sum_of(shares)) / static_cast<double>(kMiB) /
           in_seconds(replay.length);
  };
  const std::uint64_t all = requests_of(replay.before);
  WorkGap largest = {
      .virtual_pfs = "", .recorded = rate(replay.before), .replayed = rate(replay.after)};
  for (const auto& [name, before, after] : pairs_of(replay)) {
    if (before == nullptr || before->requests < all / kPart) continue;
    const WorkGap gap = {.virtual_pfs = name,
                         .recorded = static_cast<double>(before->requests),
                         .replayed = after == nullptr ? 0 : static_cast<double>(after->requests)};
    if (gap.ratio() > largest.ratio()) largest = gap;
  }
  return largest;
}

std::string totals_text(const FinishedReplay& replay) {
  constexpr double kMuch = 1.25;
  const auto rate_of = [&](const Shares& shares) {
    return static_cast<double>(sum_of(shares)) / static_cast<double>(kMiB) /
           in_seconds(replay.length);
  };
  const WorkGap bytes = {.recorded = rate_of(replay.before), .replayed = rate_of(replay.after)};
  const WorkGap requests = {.recorded = static_cast<double>(requests_of(replay.before)),
                            .replayed = static_cast<double>(requests_of(replay.after))};
  std::string text = fmt::format(
      "All together: recorded {:.1f} MiB/s and {:.0f} requests, replayed {:.1f} MiB/s "
      "and {:.0f} requests.\n",
      bytes.recorded, requests.recorded, bytes.replayed, requests.replayed);
  if (std::max(bytes.ratio(), requests.ratio()) > kMuch) {
    text +=
        "Rely on this only if a replay with the configuration of the recording finds what was "
        "recorded.\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const FinishedReplay& replay) {
  Json rows = Json::array();
  const std::uint64_t before = sum_of(replay.before);
  const std::uint64_t after = sum_of(replay.after);
  for (const BeforeAndAfter& each : pairs_of(replay)) {
    rows.push_back({{"name", each.name},
                    {"before", json_of(each.before, before, replay.length)},
                    {"after", json_of(each.after, after, replay.length)}});
  }
  return {{"recording", replay.recording},
          {"config", replay.config},
          {"length_us", microseconds_of(replay.length)},
          {"device",
           {{"bandwidth", replay.device.bandwidth.count},
            {"per_request_us", microseconds_of(replay.device.per_request)},
            {"parallelism", replay.device.parallelism}}},
          {"not_recorded", replay.not_recorded},
          {"moved_requests", replay.moved},
          {"ambiguous", replay.ambiguous},
          {"names_are_full", replay.names_are_full},
          {"has_one_lane", replay.has_one_lane},
          {"virtual_pfs", std::move(rows)}};
}

std::string to_json(const FinishedReplay& replay) {
  return json_text(json_of(replay), 2) + "\n";
}

}  // namespace vpfs::sim_tool
