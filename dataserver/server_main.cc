#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

#include <asio/signal_set.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/command_line.h"
#include "base/config_file.h"
#include "base/log/log.h"
#include "base/system_clock.h"
#include "dataserver/orangefs/config_summary.h"
#include "dataserver/orangefs/server.h"
#include "net/endpoint.h"
#include "net/socket_options.h"

namespace {

using namespace vpfs;
using namespace vpfs::dataserver;

struct Options {
  std::string config;
  std::string server;
  bool check_only = false;
};

std::chrono::milliseconds time_of_day() {
  std::timespec now = {};
  std::timespec_get(&now, TIME_UTC);
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

int complain(const std::string& message) {
  fmt::print(stderr, "vpfs-server: {}\n", message);
  return kBadUsage;
}

std::optional<ServerConfig> load(const std::string& path) {
  ConfigErrors errors(path);
  std::optional<ServerConfig> config = load_config(errors, parse_server_config);
  if (!config) fmt::print(stderr, "{}", errors.to_string());
  return config;
}

// A port that the kernel chose takes the place of port 0 in the configuration.
void fill_in_port(ServerConfig& config, std::uint32_t self, const net::Endpoint& endpoint) {
  std::string& address = config.servers[self].addresses.front();
  if (address.ends_with(":0")) {
    address = address.substr(0, address.size() - 1) + std::to_string(endpoint.port());
  }
}

int run(ServerConfig config, std::uint32_t self) {
  const std::string alias = config.servers[self].alias;
  const auto endpoint = net::resolve_endpoint(config.servers[self].listen_address());
  if (!endpoint) return complain(endpoint.error().message);
  (void)net::raise_open_file_limit();
  net::ignore_broken_pipes();

  asio::io_context context(1);
  auto listener = net::Listener::open(context, *endpoint);
  if (!listener) return complain(listener.error().message);
  fill_in_port(config, self, listener->local_endpoint());

  const SystemClock clock;
  auto server =
      Server::open(context, std::move(config), self, std::move(*listener), clock, time_of_day);
  if (!server) return complain(server.error().message);
  asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](std::error_code error, int /*number*/) {
    if (!error) (*server)->stop();
  });
  (*server)->start();
  fmt::print("vpfs-server {} ready on {}\n", alias, net::to_string((*server)->local_endpoint()));
  std::fflush(stdout);
  context.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  OptionParser app("Data and metadata server of the embedded parallel file system");
  app.add_option("--config", options.config, "the file system's configuration (YAML); required")
      .value_name("FILE");
  app.add_option("--server", options.server, "this server's alias in the configuration")
      .value_name("ALIAS");
  app.add_flag("--check-config", options.check_only,
               "say what the configuration will do, and exit");
  try {
    if (const auto code = app.parse("vpfs-server", argc, argv)) return *code;
    if (options.config.empty()) return app.missing("--config");
    std::optional<ServerConfig> config = load(options.config);
    if (!config) return kBadUsage;
    std::optional<std::uint32_t> self;
    if (!options.server.empty()) {
      self = config->find_server(options.server);
      if (!self)
        return complain(fmt::format("{} has no server '{}'", options.config, options.server));
    } else if (config->servers.size() == 1) {
      self = 0;
    }
    if (options.check_only) {
      fmt::print("{}: ok\n{}", options.config, to_summary(*config, self));
      return 0;
    }
    if (!self) return complain("the file system has several servers; choose one with --server");
    if (auto logging = set_up_logging("vpfs-server", config->log_level); !logging) {
      return complain(logging.error().message);
    }
    return run(std::move(*config), *self);
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}
