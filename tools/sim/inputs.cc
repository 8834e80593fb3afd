#include "tools/sim/inputs.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/config_file.h"
#include "base/config_reader.h"
#include "sim/proxies/whatif/what_if.h"
#include "stage/config/policy_plugins.h"
#include "tools/recording/json_lines.h"
#include "tools/sim/recording.h"
#include "tools/sim/replay_input.h"

namespace vpfs::sim_tool {
namespace {

namespace fs = std::filesystem;

using AnyScenario = std::variant<sim::Scenario, sim::ClusterScenario>;

void read_recordings(sim::Scenario& scenario, const fs::path& folder, ConfigErrors& errors) {
  for (std::size_t i = 0; i < scenario.applications.size(); ++i) {
    sim::SimulatedApplication& application = scenario.applications[i];
    if (application.arrivals != sim::SimulatedApplication::Arrivals::recorded) continue;
    auto recorded = read_recording(folder / application.recording, application.recorded_name);
    if (recorded) {
      application.recorded = std::move(*recorded);
    } else {
      errors.add(fmt::format("applications[{}].recording", i), recorded.error().message);
    }
  }
}

std::optional<proxy::Config> read_config(const std::string& file, const control::HostNames& names,
                                         stage::PolicyLoader& plugins, std::string& problems) {
  ConfigErrors errors(file);
  auto config = load_config_and_folder(errors, [&](std::string_view text, ConfigErrors& found) {
    return proxy::parse_config(text, found, nullptr, &names, &plugins);
  });
  problems += errors.to_string();
  return config;
}

// A configuration, and the files of its folder.
void add_config_files(const std::string& config, std::vector<std::string>& files) {
  files.push_back(config);
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(config_folder(config), none)) {
    files.push_back(entry.path().string());
  }
}

std::optional<Input> complete(sim::Scenario scenario, const fs::path& file,
                              const control::HostNames& names, stage::PolicyLoader& plugins,
                              ConfigErrors& errors, std::string& problems) {
  read_recordings(scenario, file.parent_path(), errors);
  const std::string configuration =
      (file.parent_path() / scenario.configuration).lexically_normal().string();
  std::string its_problems;
  auto config = read_config(configuration, names, plugins, its_problems);
  if (config) {
    const std::string problem = sim::problem_of(scenario, *config);
    if (!problem.empty()) errors.add("coordinator.policy", problem);
  }
  problems += errors.to_string() + its_problems;
  if (!config || !errors.empty()) return std::nullopt;
  std::vector<std::string> files = {file.string()};
  add_config_files(configuration, files);
  for (const sim::SimulatedApplication& application : scenario.applications) {
    if (application.recording.empty()) continue;
    files.push_back((file.parent_path() / application.recording).string());
  }
  return WhatIfInput{.name = file.filename().string(),
                     .files = std::move(files),
                     .scenario = std::move(scenario),
                     .config = std::move(*config)};
}

}  // namespace

std::optional<Input> read_input(const std::string& file, const control::HostNames& names,
                                stage::PolicyLoader& plugins, std::string& problems) {
  ConfigErrors errors(file);
  auto scenario = load_config(errors, [](std::string_view text, ConfigErrors& found) {
    return sim::is_cluster_scenario(text) ? AnyScenario(sim::read_cluster_scenario(text, found))
                                          : AnyScenario(sim::read_scenario(text, found));
  });
  if (!scenario) {
    problems += errors.to_string();
    return std::nullopt;
  }
  if (auto* const what_if = std::get_if<sim::Scenario>(&*scenario)) {
    return complete(std::move(*what_if), file, names, plugins, errors, problems);
  }
  return ClusterInput{.name = fs::path(file).filename().string(),
                      .files = {file},
                      .scenario = std::get<sim::ClusterScenario>(std::move(*scenario))};
}

std::optional<ReplayInput> read_replay(const std::string& recording, const std::string& config,
                                       const control::HostNames& names,
                                       stage::PolicyLoader& plugins, std::string& problems) {
  ReplayInput input = {.recording = recording,
                       .config_file = config,
                       .files = {recording},
                       .load = {},
                       .config = {}};
  std::ifstream file(recording);
  auto read = recording::read_json_lines(file, recording);
  if (read) drop_overwritten(*read);
  if (!read) {
    problems += read.error().message + "\n";
  } else if (auto load = load_of(*read); !load) {
    problems += fmt::format("{}: {}\n", recording, load.error().message);
  } else {
    input.load = std::move(*load);
  }
  auto its = read_config(config, names, plugins, problems);
  if (!its || !problems.empty()) return std::nullopt;
  input.config = std::move(*its);
  add_config_files(config, input.files);
  return input;
}

}  // namespace vpfs::sim_tool
