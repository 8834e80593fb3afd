#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/config_file.h"
#include "base/config_reader.h"
#include "base/system_clock.h"
#include "control/admin/host_names.h"
#include "proxy/config.h"
#include "sim/whatif/scenario.h"
#include "sim/whatif/what_if.h"
#include "tools/sim/recording.h"
#include "tools/sim/report.h"

namespace {

namespace fs = std::filesystem;

constexpr int kGood = 0;
constexpr int kRunFailed = 1;
using vpfs::kBadUsage;

struct Options {
  std::vector<std::string> scenarios;
  bool compare = false;
  bool check_config = false;
  std::string json;
  std::string svg;
};

struct Input {
  std::string name;
  vpfs::sim::Scenario scenario;
  vpfs::proxy::Config config;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("SCENARIO", options.scenarios, "What to run (conf/sim/two-jobs.yaml)");
  app.add_flag("--compare", options.compare, "Show two scenarios side by side");
  app.add_flag("--check-config", options.check_config,
               "Say whether the files are without mistakes, and exit");
  app.add_option("--json", options.json, "Write the results to this file")->type_name("FILE");
  app.add_option("--svg", options.svg, "Draw the rates over time into this file")
      ->type_name("FILE");
}

// A configuration is found from where its scenario is.
std::optional<Input> read(const std::string& file, const vpfs::stage::Names& names,
                          std::string& problems) {
  vpfs::ConfigErrors errors(file);
  auto scenario = vpfs::load_config(errors, [](std::string_view text, vpfs::ConfigErrors& found) {
    return vpfs::sim::read_scenario(text, found);
  });
  problems += errors.to_string();
  if (!scenario) return std::nullopt;
  for (vpfs::sim::SimulatedApplication& each : scenario->applications) {
    if (each.arrivals != vpfs::sim::SimulatedApplication::Arrivals::recorded) continue;
    auto recorded = vpfs::sim_tool::read_recording(fs::path(file).parent_path() / each.recording,
                                                   each.recorded_name);
    if (recorded) {
      each.recorded = std::move(*recorded);
    } else {
      problems += fmt::format("{}: application {}: recording: {}\n", file, each.name,
                              recorded.error().message);
    }
  }
  const fs::path configuration = fs::path(file).parent_path() / scenario->configuration;
  vpfs::ConfigErrors its_errors(configuration.lexically_normal().string());
  const auto parse = [&](std::string_view text, vpfs::ConfigErrors& found) {
    return vpfs::proxy::parse_config(text, found, nullptr, &names);
  };
  auto config = vpfs::load_config(its_errors, parse);
  problems += its_errors.to_string();
  if (!config) return std::nullopt;
  if (const std::string problem = vpfs::sim::problem_of(*scenario, *config); !problem.empty()) {
    problems += fmt::format("{}: {}\n", file, problem);
    return std::nullopt;
  }
  return Input{.name = fs::path(file).filename().string(),
               .scenario = std::move(*scenario),
               .config = std::move(*config)};
}

// Runs it in steps, with a line about each on a terminal.
vpfs::sim_tool::FinishedRun run(const Input& input) {
  constexpr int kSteps = 100;
  const bool live = ::isatty(STDERR_FILENO) == 1;
  vpfs::sim::WhatIf simulation(input.scenario, input.config);
  const vpfs::SystemClock clock;
  const vpfs::TimePoint begin = clock.now();
  for (int step = 1; step <= kSteps; ++step) {
    simulation.run_until(simulation.length() * step / kSteps);
    if (live) {
      fmt::print(stderr, "\r{}: {} %, {} events ", input.name, step, simulation.events());
      (void)std::fflush(stderr);
    }
  }
  if (live) fmt::print(stderr, "\r\x1b[K");
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  struct rusage usage = {};
  (void)::getrusage(RUSAGE_SELF, &usage);
  // To stderr: the output proper is the same on every machine.
  fmt::print(
      stderr, "{}: {:.1f} s of virtual time, {} events in {:.2f} s, {:.2f} million/s, {} MiB\n",
      input.name, std::chrono::duration<double>(simulation.length()).count(), simulation.events(),
      seconds, static_cast<double>(simulation.events()) / seconds / 1e6, usage.ru_maxrss / 1024);
  return {.name = input.name,
          .scenario = input.scenario,
          .policy = input.config.policy,
          .result = simulation.result()};
}

bool write(const std::string& file, const std::string& text) {
  if (file.empty()) return true;
  std::ofstream out(file);
  if (out << text && out.flush()) return true;
  fmt::print(stderr, "{}: cannot be written\n", file);
  return false;
}

int run(const Options& options) {
  vpfs::control::HostNames names;
  std::string problems;
  std::vector<Input> inputs;
  for (const std::string& file : options.scenarios) {
    std::optional<Input> input = read(file, names, problems);
    if (input) inputs.push_back(std::move(*input));
  }
  if (options.compare && options.scenarios.size() != 2) {
    problems += "--compare: takes two scenarios\n";
  }
  if (!problems.empty()) {
    fmt::print(stderr, "{}", problems);
    return kBadUsage;
  }
  if (options.check_config) {
    for (const std::string& file : options.scenarios) fmt::print("{}: ok\n", file);
    return kGood;
  }
  std::vector<vpfs::sim_tool::FinishedRun> runs;
  for (const Input& input : inputs) runs.push_back(run(input));
  if (options.compare) {
    fmt::print("{}", vpfs::sim_tool::to_comparison(runs[0], runs[1]));
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fmt::print("{}{}", i == 0 ? "" : "\n", vpfs::sim_tool::to_table(runs[i]));
    }
  }
  const bool json = write(options.json, vpfs::sim_tool::to_json(runs));
  const bool svg = write(options.svg, vpfs::sim_tool::to_svg(runs));
  return json && svg ? kGood : kRunFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("vpfs-sim: what applications would get, in virtual time");
    Options options;
    add_options(app, options);
    if (const auto code = vpfs::parse_command_line(app, "vpfs-sim", argc, argv)) return *code;
    if (options.scenarios.empty()) return vpfs::missing_option(app, "SCENARIO");
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-sim: {}\n", error.what());
    return kRunFailed;
  }
}
