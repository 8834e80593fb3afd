#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/command_line.h"
#include "control/admin/host_names.h"
#include "control/plugins/plugin_files.h"
#include "control/words/printable.h"
#include "sim/cluster/cluster.h"
#include "sim/proxies/whatif/what_if.h"
#include "tools/output/outputs.h"
#include "tools/sim/cluster_report.h"
#include "tools/sim/inputs.h"
#include "tools/sim/progress.h"
#include "tools/sim/replay_report.h"
#include "tools/sim/replay_run.h"
#include "tools/sim/report.h"

namespace vpfs::sim_tool {
namespace {

constexpr int kGood = 0;
constexpr int kRunFailed = 1;

struct Options {
  std::vector<std::string> scenarios;
  bool compare = false;
  bool check_config = false;
  std::string json;
  std::string svg;
  std::string replay;
  std::string config;
};

void add_options(const Command& app, Options& options) {
  app.add_option("SCENARIO", options.scenarios,
                 "What to run (conf/sim/two-jobs.yaml, conf/sim/data-placement.yaml)");
  app.add_flag("--compare", options.compare, "Show two scenarios side by side");
  app.add_flag("--check-config", options.check_config,
               "Say whether the files are without mistakes, and exit");
  app.add_option("--json", options.json, "Write the results to this file").value_name("FILE");
  app.add_option("--svg", options.svg, "Draw what happened over time into this file")
      .value_name("FILE");
  app.add_option("--replay", options.replay,
                 "Instead of a SCENARIO: a recording of `vpfsctl record dump`, to try --config on")
      .value_name("FILE");
  app.add_option("--config", options.config, "The configuration of vpfs-proxy to try")
      .value_name("FILE");
}

std::optional<FinishedRun> run(const WhatIfInput& input) {
  constexpr int kSteps = 100;
  sim::WhatIf simulation(input.scenario, input.config);
  const Progress progress(input.name);
  for (int step = 1; step <= kSteps; ++step) {
    simulation.run_until(simulation.length() * step / kSteps);
    if (!simulation.problem().empty()) {
      fmt::print(stderr, "{}: {}\n", input.name, words::printable(simulation.problem()));
      return std::nullopt;
    }
    progress.show(fmt::format("{} %", step), simulation.events());
  }
  progress.end(simulation.length(), simulation.events());
  return FinishedRun{.name = input.name,
                     .scenario = input.scenario,
                     .policy = input.config.policy,
                     .result = simulation.result()};
}

std::optional<FinishedCluster> run(const ClusterInput& input) {
  constexpr std::uint64_t kEvents = 10'000;  // between two lines of progress
  sim::Cluster simulation(input.scenario);
  const Progress progress(input.name);
  while (!simulation.is_done()) {
    const bool goes_on = simulation.run(kEvents);
    progress.show(
        fmt::format("{} of {} applications", simulation.ended(), simulation.applications()),
        simulation.events());
    if (goes_on) continue;
    fmt::print(stderr, "{}: the applications would take more than 10 years\n", input.name);
    return std::nullopt;
  }
  progress.end(simulation.now(), simulation.events());
  return FinishedCluster{
      .name = input.name, .scenario = input.scenario, .result = simulation.result()};
}

bool write(const std::string& file, const std::string& text) {
  if (file.empty()) return true;
  const Result<void> written = output::write_whole(file, text);
  if (!written) fmt::print(stderr, "{}\n", written.error().message);
  return written.has_value();
}

std::string problem_of_outputs(const Options& options, const std::vector<std::string>& inputs) {
  return output::problem_of(
      {{.option = "--json", .path = options.json}, {.option = "--svg", .path = options.svg}},
      inputs);
}

// REQUIRES: all inputs are of this kind.
template <typename Kind>
int run_all(const std::vector<Input>& inputs, const Options& options) {
  using Finished = typename decltype(run(std::declval<const Kind&>()))::value_type;
  std::vector<Finished> runs;
  for (const Input& input : inputs) {
    auto finished = run(std::get<Kind>(input));
    if (!finished) break;
    runs.push_back(std::move(*finished));
  }
  const bool all = runs.size() == inputs.size();
  if (!all && (options.compare || runs.empty())) return kRunFailed;
  // What has finished may have taken long.
  if (options.compare) {
    fmt::print("{}", to_comparison(runs[0], runs[1]));
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fmt::print("{}{}", i == 0 ? "" : "\n", to_table(runs[i]));
    }
  }
  const bool json = write(options.json, to_json(runs));
  const bool svg = write(options.svg, to_svg(runs));
  return all && json && svg ? kGood : kRunFailed;
}

FinishedReplay run(const ReplayInput& input) {
  const Progress progress(input.recording);
  std::uint64_t done = 0;
  FinishedReplay made = replayed(input.load, input.config, [&](int percent, std::uint64_t events) {
    progress.show(fmt::format("{} %", percent), done = events);
  });
  progress.end(made.length, done);
  made.recording = input.recording;
  made.config = input.config_file;
  return made;
}

int run_replay(const Options& options) {
  if (options.config.empty() || options.replay.empty()) {
    fmt::print(stderr,
               "--replay FILE needs --config FILE, and --config FILE needs --replay FILE\n");
    return kBadUsage;
  }
  if (!options.scenarios.empty() || options.compare || !options.svg.empty()) {
    fmt::print(stderr, "--replay: takes no SCENARIO, --compare or --svg\n");
    return kBadUsage;
  }
  control::HostNames names;
  control::PluginFiles plugins;
  std::string problems;
  const std::optional<ReplayInput> input =
      read_replay(options.replay, options.config, names, plugins, problems);
  if (input) problems = problem_of_outputs(options, input->files);
  if (!problems.empty()) {
    fmt::print(stderr, "{}", problems);
    return kBadUsage;
  }
  if (options.check_config) {
    fmt::print("{}: ok\n{}: ok\n", options.replay, options.config);
    return kGood;
  }
  const FinishedReplay finished = run(*input);
  fmt::print("{}\n{}", to_table(finished), totals_text(finished));
  return write(options.json, to_json(finished)) ? kGood : kRunFailed;
}

int run(const Options& options) {
  control::HostNames names;
  control::PluginFiles plugins;
  std::string problems;
  std::vector<Input> inputs;
  std::vector<std::string> files;
  for (const std::string& file : options.scenarios) {
    std::optional<Input> input = read_input(file, names, plugins, problems);
    if (!input) continue;
    if (!options.check_config && !inputs.empty() && inputs.front().index() != input->index()) {
      problems += fmt::format("{}: is not of the kind of the scenarios before it\n", file);
    }
    const auto& its = std::visit(
        [](const auto& each) -> const auto& { return each.files; }, *input);
    files.insert(files.end(), its.begin(), its.end());
    inputs.push_back(std::move(*input));
  }
  if (options.compare && options.scenarios.size() != 2) {
    problems += "--compare: takes two scenarios\n";
  }
  problems += problem_of_outputs(options, files);
  if (!problems.empty()) {
    fmt::print(stderr, "{}", problems);
    return kBadUsage;
  }
  if (options.check_config) {
    for (const std::string& file : options.scenarios) fmt::print("{}: ok\n", file);
    return kGood;
  }
  return std::holds_alternative<ClusterInput>(inputs.front())
             ? run_all<ClusterInput>(inputs, options)
             : run_all<WhatIfInput>(inputs, options);
}

}  // namespace
}  // namespace vpfs::sim_tool

namespace {

int run(int argc, char** argv) {
  vpfs::OptionParser app("vpfs-sim: what applications would get, in virtual time");
  vpfs::sim_tool::Options options;
  vpfs::sim_tool::add_options(app, options);
  if (const auto code = app.parse("vpfs-sim", argc, argv)) return *code;
  if (!options.replay.empty() || !options.config.empty()) {
    return vpfs::sim_tool::run_replay(options);
  }
  if (options.scenarios.empty()) return app.missing("SCENARIO");
  return vpfs::sim_tool::run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return vpfs::exit_after_output("vpfs-sim", run(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-sim: {}\n", error.what());
    return vpfs::sim_tool::kRunFailed;
  }
}
