#include "proxy/config/config_summary.h"

#include <utility>

#include <fmt/format.h>

#include "control/host/config_summary.h"

namespace vpfs::proxy {
namespace {

std::string place(const Config& config) {
  const std::string server = config.upstream == kOriginal
                                 ? "the port that each client was redirected from"
                                 : config.upstream;
  return fmt::format("listens at {} for the {} data server at {}", config.listen, config.protocol,
                     server);
}

std::string process(const Config& config) {
  const std::string workers = config.workers ? control::counted(*config.workers, "worker")
                                             : "workers by the number of processors";
  return workers + ", " + control::process_summary(config);
}

std::string limits(const Config& config) {
  const Timeouts& times = config.timeouts;
  return fmt::format(
      "at most {} clients; a request is held for {}; an I/O without progress gives its slot back "
      "after {}",
      config.limits.connections,
      times.hold ? to_string(*times.hold) + " at most" : "80 % of the clients' time-out at most",
      to_string(times.service));
}

}  // namespace

std::string to_summary(const Config& config) {
  return control::indented(
             {place(config), process(config), control::ports_summary(config), limits(config)}) +
         control::stage_summary(config);
}

std::vector<std::string> start_lines(const Config& config, std::string_view version) {
  std::vector<std::string> lines = {fmt::format("version {} starts", version), place(config),
                                    process(config)};
  std::string reached = control::ports_summary(config);
  if (!reached.empty()) lines.push_back(std::move(reached));
  for (std::string& line : control::stage_lines(config)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace vpfs::proxy
