#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/command_line.h"
#include "base/config_file.h"
#include "base/config_reader.h"
#include "base/log/log.h"
#include "base/system_clock.h"
#include "base/units.h"
#include "net/socket_options.h"
#include "tools/load/report.h"
#include "tools/load/run.h"
#include "tools/load/settings.h"
#include "tools/load/settings_summary.h"
#include "tools/output/output_file.h"
#include "tools/output/outputs.h"

namespace {

constexpr int kGood = 0;
constexpr int kRunFailed = 1;
using vpfs::kBadUsage;

struct Options {
  std::string config;
  std::string json;
  bool check_config = false;
  bool no_live = false;
  std::string file_system;
  std::string duration;
  std::string warm_up;
  std::string interval;
};

void add_options(const vpfs::Command& app, Options& options) {
  app.add_option("--config", options.config, "What to run (conf/load.yaml); required")
      .value_name("FILE");
  app.add_option("--json", options.json, "Write the results to this file").value_name("FILE");
  app.add_flag("--check-config", options.check_config,
               "Say what the configuration will do, and exit");
  app.add_flag("--no-live", options.no_live, "Print no line for each measured second");
  app.add_option("--file-system", options.file_system,
                 "Instead of the file's: tcp://HOST:PORT/NAME, "
                 "beegfs://HOST:PORT/TARGET[,TARGET...]")
      .value_name("ADDRESS");
  app.add_option("--duration", options.duration,
                 "How long to measure, instead of the file's: 10s, 500ms")
      .value_name("TIME");
  app.add_option("--warm-up", options.warm_up, "How long to run before, instead of the file's")
      .value_name("TIME");
  app.add_option("--interval", options.interval,
                 "Time between two points of the timeline in the results")
      .value_name("TIME");
}

std::optional<vpfs::Duration> duration_option(const char* name, const std::string& text,
                                              std::string& problems) {
  if (text.empty()) return std::nullopt;
  const vpfs::Result<vpfs::Duration> value = vpfs::parse_duration(text);
  if (value && (*value > vpfs::Duration::zero() || std::string(name) == "--warm-up")) return *value;
  problems += fmt::format("{}: {}\n", name, value ? "must be positive" : value.error().message);
  return std::nullopt;
}

std::optional<vpfs::load::LoadSettings> settings_of(const Options& options) {
  std::string problems;
  vpfs::load::Overrides overrides;
  if (!options.file_system.empty()) overrides.file_system = options.file_system;
  overrides.duration = duration_option("--duration", options.duration, problems);
  overrides.warm_up = duration_option("--warm-up", options.warm_up, problems);
  overrides.interval = duration_option("--interval", options.interval, problems);
  vpfs::ConfigErrors errors(options.config);
  auto settings = vpfs::load_config(errors, [&](std::string_view text, vpfs::ConfigErrors& found) {
    return vpfs::load::read_settings(text, overrides, found);
  });
  problems += errors.to_string();
  if (problems.empty()) return settings;
  fmt::print(stderr, "{}", problems);
  return std::nullopt;
}

int run(const Options& options) {
  if (const auto logging = vpfs::set_up_logging("vpfs-load", "info"); !logging) {
    fmt::print(stderr, "{}\n", logging.error().message);
    return kBadUsage;
  }
  const std::optional<vpfs::load::LoadSettings> settings = settings_of(options);
  if (!settings) return kBadUsage;
  if (options.check_config) {
    fmt::print("{}: ok\n{}", options.config, vpfs::load::to_summary(*settings));
    return kGood;
  }
  const std::string problem =
      vpfs::output::problem_of({{.option = "--json", .path = options.json}}, {options.config});
  if (!problem.empty()) {
    fmt::print(stderr, "{}", problem);
    return kBadUsage;
  }
  // Results that are there stay until the run has new ones.
  vpfs::output::OutputFile json;
  if (!options.json.empty()) {
    if (const vpfs::Result<void> opened = json.open(options.json, 0666); !opened) {
      fmt::print(stderr, "{}\n", opened.error().message);
      return kBadUsage;
    }
  }
  (void)vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  const auto print = [](const std::string& line) {
    fmt::print("{}\n", line);
    (void)std::fflush(stdout);
  };
  const auto result = vpfs::load::run(
      *settings, clock,
      options.no_live ? std::function<void(const std::string&)>() : std::move(print));
  if (!result) {
    fmt::print(stderr, "vpfs-load: {}\n", result.error().message);
    return kRunFailed;
  }
  fmt::print("{}", vpfs::load::to_table(*settings, *result));
  if (!options.json.empty()) {
    json.write(vpfs::load::to_json(*settings, *result));
    if (const vpfs::Result<void> written = json.finish(); !written) {
      fmt::print(stderr, "{}\n", written.error().message);
      return kRunFailed;
    }
  }
  return result->good() ? kGood : kRunFailed;
}

int run(int argc, char** argv) {
  vpfs::OptionParser app("vpfs-load: competing applications on a parallel file system");
  Options options;
  add_options(app, options);
  if (const auto code = app.parse("vpfs-load", argc, argv)) return *code;
  if (options.config.empty()) return app.missing("--config");
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return vpfs::exit_after_output("vpfs-load", run(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-load: {}\n", error.what());
    return kRunFailed;
  }
}
