#include "fuse/posix/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/config_file.h"
#include "control/host/config_changes.h"
#include "control/host/config_summary.h"
#include "control/host/config_values.h"
#include "fuse/posix/node_addresses.h"
#include "stage/config/job_config.h"
#include "stage/config/rule_config.h"
#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "stage/rules/rule_checks.h"

namespace vpfs::fuse {
namespace {

constexpr std::string_view kDefault = R"(
virtual_pfs:
  job-{jobid}: {weight: 1}
  user-{uid}: {weight: 1}
  default: {weight: 1}
rules:
  - match: {jobid: "*"}
    virtual_pfs: job-{jobid}
  - match: {}
    virtual_pfs: user-{uid}
)";

void read_mount(ConfigReader reader, Config& config) {
  config.source = "a mounted directory";
  config.shown = {Attribute::hint, Attribute::jobid, Attribute::uid, Attribute::metadata};
  control::read_process(reader, config, kProgramName);
  reader.get("drain", &config.drain, Duration::zero(), std::chrono::hours(24));
  reader.finish();
}

void read_limits(ConfigReader reader, Config& config) {
  reader.get("held_bytes", &config.held_bytes, {8 * kMiB}, {1024 * kGiB});
  stage::read_stage_limits(reader, config);
}

control::ConfigValues values_of(const Config& config) {
  control::ConfigValues values;
  control::add_process(values, config, kProgramName);
  values.emplace_back("mount.drain", to_string(config.drain));
  values.emplace_back("restart.socket", config.restart.socket);
  values.emplace_back("restart.patience", to_string(config.restart.patience));
  values.emplace_back("restart.drain", to_string(config.restart.drain));
  values.emplace_back("limits.held_bytes", to_string(config.held_bytes));
  control::add_stage_limits(values, config);
  control::add_control(values, config);
  control::add_scheduler(values, config);
  return values;
}

}  // namespace

Bytes default_held_bytes() {
  constexpr std::uint64_t kPartOfMemory = 8;
  const auto memory = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {std::clamp<std::uint64_t>(memory / kPartOfMemory, 32 * kMiB, 256 * kMiB)};
}

std::string_view default_config() {
  return kDefault;
}

Config parse_config(std::string_view text, ConfigErrors& errors, const Config* running,
                    const stage::Names* names, stage::PolicyLoader* plugins) {
  Config config;
  config.file_text = text;
  config.names = names;
  config.plugin_loader = plugins;
  ConfigReader reader(text, errors, stage::kKeysOfParts);
  read_mount(reader.child("mount"), config);
  read_limits(reader.child("limits"), config);
  control::read_restart(reader.child("restart"), config.restart,
                        running == nullptr ? nullptr : &running->restart, kProgramName);
  control::read_control(reader, config, running, kProgramName);
  stage::read_scheduler(reader.child("scheduler"), config, running);
  stage::read_shares(reader, config);
  stage::read_jobs(reader, config);
  stage::read_rules(reader, config);
  return config;
}

std::optional<Config> load_config_file(ConfigErrors& errors, const std::string& socket,
                                       const Config* running, const stage::Names* names,
                                       stage::PolicyLoader* plugins) {
  std::vector<stage::Address> addresses;
  for (const std::string& each : this_node().addresses) {
    if (const auto address = stage::Address::parse(each)) addresses.push_back(*address);
  }
  const auto parse = [&](std::string_view text, ConfigErrors& into) {
    Config config = parse_config(text, into, running, names, plugins);
    config.node_addresses = addresses;
    if (!socket.empty()) config.control.socket = socket;
    return config;
  };
  std::optional<Config> config;
  if (errors.file().empty()) {
    config = parse(default_config(), errors);
  } else {
    config = load_config_and_folder(errors, parse);
  }
  if (!config || !errors.empty()) return std::nullopt;
  control::check_process(*config, errors, kProgramName, names);
  control::check_restart(config->restart, *config, errors);
  if (running == nullptr) control::check_folders(*config, errors);
  if (errors.empty()) stage::warn_of_hidden_rules(config->rules, errors);
  if (errors.empty()) stage::warn_of_no_jobs(*config, errors);
  if (!errors.empty()) return std::nullopt;
  return config;
}

std::vector<std::string> changes(const Config& before, const Config& after) {
  std::vector<std::string> lines = control::differences(values_of(before), values_of(after));
  for (std::string& line : control::stage_changes(before, after)) lines.push_back(std::move(line));
  return lines;
}

std::string to_summary(const Config& config) {
  return control::indented({control::process_summary(config), control::ports_summary(config)}) +
         control::stage_summary(config);
}

std::vector<std::string> start_lines(const Config& config) {
  std::vector<std::string> lines = {control::process_summary(config)};
  std::string reached = control::ports_summary(config);
  if (!reached.empty()) lines.push_back(std::move(reached));
  for (std::string& line : control::stage_lines(config)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace vpfs::fuse
