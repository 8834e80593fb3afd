#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <unistd.h>

#include "base/command_line.h"
#include "base/log/log.h"
#include "base/system_clock.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/coordinator.h"
#include "net/endpoint.h"
#include "net/socket_options.h"

namespace {

using vpfs::kBadUsage;
using vpfs::coordinator::Coordinator;

constexpr const char* kName = "vpfs-coordinator";

int serve(const vpfs::coordinator::Config& config, const vpfs::ConfigErrors& errors,
          const Coordinator::Options& options) {
  if (const auto logging = vpfs::set_up_logging(kName, config.log_level, config.log); !logging) {
    std::cerr << kName << ": " << logging.error().message << "\n";
    return kBadUsage;
  }
  for (const std::string& warning : errors.warnings()) {
    vpfs::log_answer(spdlog::level::warn, warning);
  }
  (void)vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  const auto coordinator = Coordinator::make(config, clock, options);
  if (!coordinator) {
    std::cerr << kName << ": " << coordinator.error().message << "\n";
    return 1;
  }
  const auto tcp = (*coordinator)->tcp_endpoint();
  std::cout << kName << ": ready, policy " << config.policy << ", term " << (*coordinator)->term()
            << ", " << config.dial.size() << " stages to dial"
            << (tcp ? ", stages may dial " + vpfs::net::to_string(*tcp) : "") << ", pid "
            << ::getpid() << std::endl;
  (*coordinator)->run();
  return 0;
}

int run(int argc, char** argv) {
  vpfs::OptionParser app("Divides what a site has among its applications.");
  std::string path;
  bool only_check = false;
  Coordinator::Options options;
  app.add_option("--config", path, "configuration file (YAML); required").value_name("FILE");
  app.add_flag("--check-config", only_check, "look at the configuration, and exit");
  app.add_option("--cycle-log", options.cycle_log, "write a line of CSV for each cycle")
      .value_name("FILE");
  app.add_option("--term", options.least_term,
                 "begin with this term at least: when stages know a later one than the journal")
      .value_name("NUMBER");
  app.add_flag("--plain-tcp-for-measurements", options.links.plain_tcp).hidden();
  if (const auto code = app.parse(kName, argc, argv)) return *code;
  if (path.empty()) return app.missing("--config");
  vpfs::ConfigErrors errors(path);
  const auto config = vpfs::coordinator::load_config_file(errors);
  if (!config) {
    std::cerr << errors.to_string();
    return kBadUsage;
  }
  if (!only_check) return serve(*config, errors, options);
  for (const std::string& warning : errors.warnings()) std::cerr << "warning: " << warning << "\n";
  std::cout << path << ": ok\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}
