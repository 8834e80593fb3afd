#include "dataserver/orangefs/config_summary.h"

#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vpfs::dataserver {
namespace {

std::string storage(const ServerConfig& config) {
  const std::string where = config.engine == EngineKind::memory
                                ? "in memory, gone when the server ends"
                                : "in files below " + config.path;
  return fmt::format("data are kept {}; up to {} on each server", where,
                     to_string(config.capacity));
}

std::string device(const DeviceSettings& device) {
  return fmt::format("behind a modelled device of {}, {} for each request, {} at once",
                     to_string(device.bandwidth), to_string(device.per_request),
                     device.parallelism);
}

std::string striping(const ServerConfig& config) {
  const std::string over =
      config.datafiles == 0 ? "all servers" : fmt::format("{} servers", config.datafiles);
  return fmt::format("files are striped over {} in strips of {}; data messages of up to {}", over,
                     to_string(config.strip_size), to_string(config.flow_buffer_size));
}

std::string timeouts(const ServerConfig& config) {
  return fmt::format("clients are told: {} for a request, {} for a flow, {} retries {} apart",
                     to_string(config.client_job_timeout), to_string(config.client_flow_timeout),
                     config.client_retry_limit, to_string(config.client_retry_delay));
}

}  // namespace

std::string to_summary(const ServerConfig& config, std::optional<std::uint32_t> self) {
  std::string text =
      fmt::format("  file system {} (id {}) of {} server{}\n", config.name, config.id,
                  config.servers.size(), config.servers.size() == 1 ? "" : "s");
  const auto out = std::back_inserter(text);
  for (std::uint32_t i = 0; i < config.servers.size(); ++i) {
    const ServerAddress& server = config.servers[i];
    fmt::format_to(out, "    {} listens at {}", server.alias, server.listen_address());
    if (server.addresses.size() > 1) {
      fmt::format_to(out, ", announces {}",
                     fmt::join(server.addresses.begin() + 1, server.addresses.end(), ", "));
    }
    text += self == i && config.servers.size() > 1 ? "   <- this server\n" : "\n";
  }
  fmt::format_to(out, "  {}\n  {}\n", striping(config), storage(config));
  if (config.device) fmt::format_to(out, "  {}\n", device(*config.device));
  fmt::format_to(out, "  {}\n  log level {}\n", timeouts(config), config.log_level);
  return text;
}

}  // namespace vpfs::dataserver
