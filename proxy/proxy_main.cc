#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/log.h"
#include "base/system_clock.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/config.h"
#include "proxy/config_file.h"
#include "proxy/proxy.h"

namespace {

constexpr int kBadConfiguration = 2;

int serve(const vpfs::proxy::Config& config, const std::string& path) {
  if (const auto logging = vpfs::set_up_logging("vpfs-proxy", config.log_level); !logging) {
    std::cerr << "vpfs-proxy: " << logging.error().message << "\n";
    return kBadConfiguration;
  }
  (void)vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  const auto proxy = vpfs::proxy::Proxy::make(config, path, clock);
  if (!proxy) {
    std::cerr << "vpfs-proxy: " << proxy.error().message << "\n";
    return 1;
  }
  std::cout << "vpfs-proxy: ready at " << vpfs::net::to_string((*proxy)->local_endpoint())
            << " for " << config.upstream << ", pid " << ::getpid() << std::endl;
  (*proxy)->run();
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Shares the bandwidth of one data server of a parallel file system.");
  std::string path;
  bool only_check = false;
  app.add_option("--config", path, "configuration file (YAML)")->required();
  app.add_flag("--check-config", only_check, "check the configuration and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfiguration;
  }
  const vpfs::Result<std::string> text = vpfs::proxy::read_config_file(path);
  if (!text) {
    std::cerr << text.error().message << "\n";
    return kBadConfiguration;
  }
  vpfs::ConfigErrors errors(path);
  const vpfs::proxy::Config config = vpfs::proxy::parse_config(*text, errors);
  if (!errors.empty()) {
    std::cerr << errors.to_string();
    return kBadConfiguration;
  }
  if (only_check) {
    std::cout << path << ": ok\n";
    return 0;
  }
  return serve(config, path);
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
