#include "tools/sim/cluster_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ranges>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "control/words/printable.h"
#include "sim/cluster/words.h"
#include "tools/sim/text_table.h"

namespace vpfs::sim_tool {
namespace {

using Json = nlohmann::ordered_json;
using sim::ClusterApplicationResult;
using sim::ClusterLinkResult;
using sim::Step;

constexpr std::size_t kShownLinks = 8;

std::string text(Duration duration) {
  return fmt::format("{:.3f}", in_seconds(duration));
}
std::string gib(Bytes bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes.count) / static_cast<double>(kGiB));
}

Duration mean(sim::WideDuration sum, std::size_t count) {
  return std::chrono::duration_cast<Duration>(sum / static_cast<std::int64_t>(count));
}

// In the mean of its tasks.
Duration time_of(const ClusterApplicationResult& application, Step step) {
  return mean(application.tally.time(step), application.tasks);
}

double busy_percent(const ClusterLinkResult& link, Duration makespan) {
  if (makespan == Duration::zero()) return 0;
  return 100 * static_cast<double>(link.carried.count) / static_cast<double>(link.rate.count) /
         in_seconds(makespan);
}

struct Means {
  Duration waiting = {};
  Duration running = {};
};

// Those of all applications.
Means means(const sim::ClusterResult& result) {
  sim::WideDuration waiting = {};
  sim::WideDuration running = {};
  for (const ClusterApplicationResult& each : result.applications) {
    waiting += each.waiting();
    running += each.running();
  }
  const std::size_t count = result.applications.size();
  return {.waiting = mean(waiting, count), .running = mean(running, count)};
}

std::string classes_text(const sim::ClassPolicy& policy) {
  std::string text(word_of(policy.kind, sim::kClassWords));
  if (policy.kind == sim::ClassPolicy::Kind::apportioned) {
    text += fmt::format(" {}:{}", policy.communication, policy.storage);
  }
  if (policy.sharing == sim::Sharing::equal) text += ", sharing equal";
  return text;
}

std::string heading(const FinishedCluster& run) {
  const sim::ClusterScenario& scenario = run.scenario;
  const sim::Batch::Settings& batch = scenario.batch;
  return fmt::format(
      "{}: {}, {} nodes, classes {}; data {}, access {}; queue {}, nodes {}; seed {}\n",
      words::printable(run.name), words::printable(scenario.network.description),
      scenario.network.topology->nodes(), classes_text(scenario.network.policy),
      word_of(batch.data, sim::kDataWords), word_of(batch.access, sim::kAccessWords),
      word_of(batch.backfills, sim::kQueueWords), word_of(batch.nodes, sim::kNodeWords),
      scenario.seed);
}

std::string links_table(const sim::ClusterResult& result) {
  TextTable table({"busiest links", ">rate", ">carried GiB", ">busy %"});
  for (const ClusterLinkResult& each : result.links | std::views::take(kShownLinks)) {
    table.add({each.name, to_string(each.rate), gib(each.carried),
               fmt::format("{:.1f}", busy_percent(each, result.makespan))});
  }
  return table.text();
}

Json application_json(const ClusterApplicationResult& application) {
  return {{"name", application.name},
          {"tasks", application.tasks},
          {"arrived_s", in_seconds(application.arrived - TimePoint())},
          {"waiting_s", in_seconds(application.waiting())},
          {"running_s", in_seconds(application.running())},
          {"local_bytes", application.tally.local.count},
          {"remote_bytes", application.tally.remote.count},
          {"central_bytes", application.tally.central.count},
          {"staged_bytes", application.tally.staged.count},
          {"compute_s", in_seconds(time_of(application, Step::compute))},
          {"communicate_s", in_seconds(time_of(application, Step::communicate))},
          {"read_s", in_seconds(time_of(application, Step::read))},
          {"write_s", in_seconds(time_of(application, Step::write))}};
}

}  // namespace

std::string to_table(const FinishedCluster& run) {
  const sim::ClusterResult& result = run.result;
  TextTable table({"application", ">tasks", ">waiting s", ">running s", ">local GiB", ">remote GiB",
                   ">central GiB", ">compute s", ">communicate s", ">read s", ">write s"});
  for (const ClusterApplicationResult& each : result.applications) {
    table.add({each.name, fmt::format("{}", each.tasks), text(each.waiting()), text(each.running()),
               gib(each.tally.local), gib(each.tally.remote), gib(each.tally.central),
               text(time_of(each, Step::compute)), text(time_of(each, Step::communicate)),
               text(time_of(each, Step::read)), text(time_of(each, Step::write))});
  }
  const Means all = means(result);
  return heading(run) + table.text() + links_table(result) +
         fmt::format("all together {} s; in the mean waiting {} s, running {} s\n",
                     text(result.makespan), text(all.waiting), text(all.running));
}

std::string to_comparison(const FinishedCluster& before, const FinishedCluster& after) {
  TextTable table({"application", ">waiting s A", ">waiting s B", ">running s A", ">running s B",
                   ">B/A", ">remote GiB A", ">remote GiB B"});
  const auto find = [](const FinishedCluster& run,
                       const std::string& name) -> const ClusterApplicationResult* {
    const auto found =
        std::ranges::find(run.result.applications, name, &ClusterApplicationResult::name);
    return found == run.result.applications.end() ? nullptr : &*found;
  };
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const FinishedCluster* const run : {&before, &after}) {
    for (const ClusterApplicationResult& each : run->result.applications) {
      if (known.insert(each.name).second) names.push_back(each.name);
    }
  }
  const auto cell = [](const ClusterApplicationResult* application, const auto& text_of) {
    return application == nullptr ? std::string("-") : text_of(*application);
  };
  const auto waiting = [](const ClusterApplicationResult& each) { return text(each.waiting()); };
  const auto running = [](const ClusterApplicationResult& each) { return text(each.running()); };
  const auto remote = [](const ClusterApplicationResult& each) { return gib(each.tally.remote); };
  const auto ratio_of = [](Duration a, Duration b) {
    return a == Duration::zero() ? std::string("-")
                                 : fmt::format("{:.2f}", in_seconds(b) / in_seconds(a));
  };
  for (const std::string& name : names) {
    const ClusterApplicationResult* const a = find(before, name);
    const ClusterApplicationResult* const b = find(after, name);
    const bool has_both = a != nullptr && b != nullptr;
    table.add({name, cell(a, waiting), cell(b, waiting), cell(a, running), cell(b, running),
               has_both ? ratio_of(a->running(), b->running()) : "-", cell(a, remote),
               cell(b, remote)});
  }
  const Duration a = before.result.makespan;
  const Duration b = after.result.makespan;
  return "A: " + heading(before) + "B: " + heading(after) + table.text() +
         fmt::format("all together A {} s, B {} s, B/A {}\n", text(a), text(b), ratio_of(a, b));
}

std::string to_json(std::span<const FinishedCluster> runs) {
  Json all = Json::array();
  for (const FinishedCluster& run : runs) {
    const sim::Batch::Settings& batch = run.scenario.batch;
    Json json = {{"scenario", run.name},
                 {"network", run.scenario.network.description},
                 {"nodes", run.scenario.network.topology->nodes()},
                 {"classes", classes_text(run.scenario.network.policy)},
                 {"place", word_of(batch.data, sim::kDataWords)},
                 {"access", word_of(batch.access, sim::kAccessWords)},
                 {"seed", run.scenario.seed},
                 {"events", run.result.events},
                 {"unsettled", run.result.unsettled},
                 {"makespan_s", in_seconds(run.result.makespan)},
                 {"applications", Json::array()},
                 {"links", Json::array()}};
    for (const ClusterApplicationResult& each : run.result.applications) {
      json["applications"].push_back(application_json(each));
    }
    for (const ClusterLinkResult& each : run.result.links) {
      json["links"].push_back({{"name", each.name},
                               {"bytes_per_s", each.rate.count},
                               {"carried_bytes", each.carried.count},
                               {"busy_percent", busy_percent(each, run.result.makespan)}});
    }
    all.push_back(std::move(json));
  }
  return json_text(all, 2) + "\n";
}

}  // namespace vpfs::sim_tool
