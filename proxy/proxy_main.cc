#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <unistd.h>

#include "base/command_line.h"
#include "base/log/log.h"
#include "base/system_clock.h"
#include "base/version.h"
#include "control/admin/host_names.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/config/config.h"
#include "proxy/config/config_summary.h"
#include "proxy/config/host_checks.h"
#include "proxy/proxy.h"

namespace {

using vpfs::kBadUsage;

int serve(const vpfs::proxy::Config& config, const std::string& path,
          const vpfs::ConfigErrors& errors, vpfs::control::HostNames& names) {
  if (const auto logging = vpfs::set_up_logging("vpfs-proxy", config.log_level, config.log);
      !logging) {
    std::cerr << "vpfs-proxy: " << logging.error().message << "\n";
    return kBadUsage;
  }
  using spdlog::level::warn;
  for (const std::string& warning : errors.warnings()) vpfs::log_answer(warn, warning);
  (void)vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  const auto proxy = vpfs::proxy::Proxy::make(config, path, names, clock);
  if (!proxy) {
    std::cerr << "vpfs-proxy: " << proxy.error().message << "\n";
    return 1;
  }
  for (const std::string& line : start_lines(config, vpfs::version())) spdlog::info("{}", line);
  std::cout << "vpfs-proxy: ready at " << vpfs::net::to_string((*proxy)->local_endpoint())
            << " for " << config.upstream << ", pid " << ::getpid() << std::endl;
  (*proxy)->run();
  return 0;
}

int run(int argc, char** argv) {
  vpfs::OptionParser app("Shares the bandwidth of one data server of a parallel file system.");
  std::string path;
  bool only_check = false;
  app.add_option("--config", path, "configuration file (YAML); required").value_name("FILE");
  app.add_flag("--check-config", only_check, "say what the configuration will do, and exit");
  if (const auto code = app.parse("vpfs-proxy", argc, argv)) return *code;
  if (path.empty()) return app.missing("--config");
  vpfs::control::HostNames names;
  vpfs::ConfigErrors errors(path);
  const std::optional<vpfs::proxy::Config> config =
      vpfs::proxy::load_config_file(errors, nullptr, &names);
  if (!config) {
    std::cerr << errors.to_string();
    return kBadUsage;
  }
  if (!only_check) return serve(*config, path, errors, names);
  for (const std::string& warning : errors.warnings()) std::cerr << "warning: " << warning << "\n";
  std::cout << path << ": ok\n" << vpfs::proxy::to_summary(*config);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vpfs-proxy: %s\n", error.what());
    return 1;
  }
}
