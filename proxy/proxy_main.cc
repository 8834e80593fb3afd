#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/config/parts.h"
#include "base/joined.h"
#include "base/log/log.h"
#include "base/signal_block.h"
#include "base/system_clock.h"
#include "base/version.h"
#include "control/admin/host_names.h"
#include "control/handover/taker.h"
#include "control/host/service_manager.h"
#include "control/plugins/plugin_files.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/config/config.h"
#include "proxy/config/config_summary.h"
#include "proxy/config/host_checks.h"
#include "proxy/proxy.h"

namespace {

using vpfs::kBadUsage;

// The process whose place this one takes, which is told what is wrong.
int take_over_failed(vpfs::control::Predecessor* predecessor, const std::string& why, int code) {
  std::cerr << "vpfs-proxy: " << why << "\n" << std::flush;
  if (predecessor == nullptr) return code;
  predecessor->tell_failure(why);
  // Sockets and locks are the other process's: nothing here may remove them.
  std::_Exit(code);
}

// Connections beyond the limit of open files would fail one by one, each with a line in the log.
void check_open_files(std::size_t connections, unsigned long may_have) {
  constexpr std::size_t kOthers = 64;
  const std::size_t needed = 2 * connections + kOthers;
  if (may_have == 0 || needed <= may_have) return;
  // The default of limits.connections is more than most sites have, so this is not a warning.
  spdlog::info(
      "limits.connections of {} takes {} open files, and this process may have {}: raise "
      "LimitNOFILE= or `ulimit -Hn`",
      connections, needed, may_have);
}

int serve(const vpfs::proxy::Config& config, const std::string& path,
          const vpfs::ConfigErrors& errors, vpfs::control::HostNames& names,
          vpfs::control::Predecessor* predecessor) {
  if (const auto logging = vpfs::set_up_logging("vpfs-proxy", config.log_level, config.log);
      !logging) {
    return take_over_failed(predecessor, logging.error().message, kBadUsage);
  }
  using spdlog::level::warn;
  for (const std::string& warning : errors.warnings()) vpfs::log_answer(warn, warning);
  const unsigned long open_files = vpfs::net::raise_open_file_limit();
  vpfs::net::ignore_broken_pipes();
  const vpfs::SystemClock clock;
  vpfs::net::Inherited kept = vpfs::control::kept_by_manager();
  const auto proxy = vpfs::proxy::Proxy::make(config, path, names, clock, predecessor, &kept);
  if (!proxy) return take_over_failed(predecessor, proxy.error().message, 1);
  if (predecessor != nullptr) {
    const vpfs::Result<void> taken = (*proxy)->take_over();
    if (!taken) return take_over_failed(predecessor, taken.error().message, 1);
  }
  for (const std::string& line : start_lines(config, vpfs::version())) spdlog::info("{}", line);
  check_open_files(config.limits.connections, open_files);
  std::cout << "vpfs-proxy: ready at " << vpfs::net::to_string((*proxy)->local_endpoint())
            << " for " << config.upstream << ", pid " << ::getpid() << std::endl;
  kept.clear();
  const std::jthread telling = vpfs::control::tell_manager((*proxy)->listeners());
  (*proxy)->run();
  return 0;
}

int run(int argc, char** argv) {
  vpfs::OptionParser app("Shares the bandwidth of one data server of a parallel file system.");
  std::string path;
  std::string socket;
  bool only_check = false;
  app.add_option("--config", path, "configuration file (YAML); required").value_name("FILE");
  app.add_flag("--check-config", only_check, "say what the configuration will do, and exit");
  app.add_option("--take-over", socket,
                 "take over the connections of the proxy that has this socket (restart.socket)")
      .value_name("SOCKET");
  if (const auto code = app.parse("vpfs-proxy", argc, argv)) return *code;
  if (path.empty()) return app.missing("--config");
  vpfs::control::HostNames names;
  vpfs::control::PluginFiles plugins;
  vpfs::ConfigErrors errors(path);
  const std::optional<vpfs::proxy::Config> config =
      vpfs::proxy::load_config_file(errors, nullptr, &names, &plugins);
  std::optional<vpfs::control::Predecessor> predecessor;
  if (!socket.empty() && !only_check) {
    auto met = vpfs::control::Predecessor::meet(socket);
    if (!met) return take_over_failed(nullptr, met.error().message, 1);
    predecessor.emplace(std::move(*met));
  }
  if (!config) {
    std::cerr << errors.to_string();
    if (predecessor) predecessor->tell_failure(vpfs::joined(errors.lines(), "; "));
    return kBadUsage;
  }
  if (!only_check)
    return serve(*config, path, errors, names, predecessor ? &*predecessor : nullptr);
  for (const std::string& warning : errors.warnings()) std::cerr << "warning: " << warning << "\n";
  std::cout << path << ": ok\n";
  for (const vpfs::ConfigPart& part : vpfs::parts_of(config->file_text)) {
    if (!part.file.empty()) std::cout << part.file << ": ok\n";
  }
  std::cout << vpfs::proxy::to_summary(*config);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  vpfs::hold_back_asking_signals();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vpfs-proxy: %s\n", error.what());
    return 1;
  }
}
