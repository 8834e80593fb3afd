#include "dataserver/orangefs/server_config.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace vpfs::dataserver {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kMostBytes{std::uint64_t{1} << 60};

// What is wrong with "tcp://host:port" or "tcp-zone://host:port"; empty when nothing is.
std::string address_problem(std::string_view address, bool first) {
  const std::size_t scheme_end = address.find("://");
  if (scheme_end == std::string_view::npos) {
    return fmt::format("'{}' is not an address: expected tcp://HOST:PORT", address);
  }
  const std::string_view scheme = address.substr(0, scheme_end);
  const std::string_view rest = address.substr(scheme_end + 3);
  if (scheme != "tcp" && !scheme.starts_with("tcp-")) {
    return fmt::format("'{}' has an unknown scheme: expected tcp:// or tcp-ZONE://", address);
  }
  if (first && scheme != "tcp") {
    return fmt::format("'{}' is not an address to listen at: expected tcp://HOST:PORT first",
                       address);
  }
  const std::size_t colon = rest.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string_view::npos || colon == 0 ||
      std::from_chars(rest.data() + colon + 1, rest.data() + rest.size(), port).ptr !=
          rest.data() + rest.size() ||
      colon + 1 == rest.size()) {
    return fmt::format("'{}' has no valid port: expected one from 0 to 65535 at the end", address);
  }
  if (address.find_first_of(" \t\r\n,<>") != std::string_view::npos) {
    return fmt::format("'{}' contains a blank, comma or angle bracket", address);
  }
  return {};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

void read_file_system(ConfigReader reader, ServerConfig& config) {
  reader.get("name", &config.name);
  if (!is_plain_name(config.name)) {
    reader.report("name", "must be 1 to 64 letters, digits, '-', '_' or '.'");
  }
  std::uint64_t id = 0;
  reader.require("id");
  if (reader.get("id", &id, 1, 0x7fffffff)) config.id = static_cast<std::int32_t>(id);
  reader.get("strip_size", &config.strip_size, Bytes{4 * kKiB}, Bytes{kGiB});
  reader.get("flow_buffer_size", &config.flow_buffer_size, Bytes{16 * kKiB}, Bytes{8 * kMiB});
  reader.get("datafiles", &config.datafiles, 0, kMostServers);
}

void read_servers(ConfigReader& reader, ServerConfig& config) {
  reader.require("servers");
  std::set<std::string> aliases;
  std::set<std::string> addresses;
  const bool is_list = reader.for_each("servers", [&](ConfigReader& entry) {
    ServerAddress server;
    entry.require("alias");
    if (entry.get("alias", &server.alias) && !is_plain_name(server.alias)) {
      entry.report("alias", "must be 1 to 64 letters, digits, '-', '_' or '.'");
    }
    if (!aliases.insert(server.alias).second) entry.report("alias", "is listed twice");
    entry.require("addresses");
    entry.get("addresses", &server.addresses);
    for (const std::string& address : server.addresses) {
      const bool first = &address == &server.addresses.front();
      const std::string problem = address_problem(address, first);
      if (!problem.empty()) entry.report("addresses", problem);
      const bool chosen_by_kernel = address.ends_with(":0");
      if (!addresses.insert(address).second && !chosen_by_kernel) {
        entry.report("addresses", fmt::format("'{}' is listed twice", address));
      }
    }
    config.servers.push_back(std::move(server));
  });
  if (is_list && config.servers.empty()) {
    reader.report("servers", "must name at least one");
  }
  if (config.servers.size() > kMostServers) {
    reader.report("servers",
                  fmt::format("{} servers; at most {}", config.servers.size(), kMostServers));
  }
}

void read_storage(ConfigReader reader, ServerConfig& config) {
  std::string engine = "memory";
  reader.choose("engine", &engine, {"memory", "directory"});
  config.engine = engine == "memory" ? EngineKind::memory : EngineKind::directory;
  reader.get("path", &config.path);
  reader.get("capacity", &config.capacity, Bytes{kMiB}, kMostBytes);
  if (config.engine == EngineKind::directory && config.path.empty()) {
    reader.report("path", "is needed by the directory engine");
  }
}

void read_device(ConfigReader reader, ServerConfig& config) {
  DeviceSettings device;
  reader.require("bandwidth");
  reader.get("bandwidth", &device.bandwidth, BytesPerSecond{1}, BytesPerSecond{1ULL << 50});
  reader.get("per_request", &device.per_request, 0s, 10s);
  reader.get("parallelism", &device.parallelism, 1, 1024);
  config.device = device;
}

void read_timeouts(ConfigReader reader, ServerConfig& config) {
  reader.get("job", &config.client_job_timeout, 1s, 86400s);
  reader.get("flow", &config.client_flow_timeout, 1s, 86400s);
  reader.get("retry_limit", &config.client_retry_limit, 0, 1000);
  reader.get("retry_delay", &config.client_retry_delay, 0s, 3600s);
}

}  // namespace

std::string ServerAddress::listen_address() const {
  const std::string& first = addresses.front();
  return first.substr(first.find("://") + 3);
}

std::optional<std::uint32_t> ServerConfig::find_server(std::string_view alias) const {
  const auto found = std::ranges::find(servers, alias, &ServerAddress::alias);
  if (found == servers.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - servers.begin());
}

EngineSettings ServerConfig::engine_settings(std::uint32_t self) const {
  return {.kind = engine,
          .capacity = capacity,
          .directory = fmt::format("{}/{}", path, servers[self].alias),
          .owner = fmt::format("file system {}, server {} of {}", id, self, servers.size()),
          .buffer_size = flow_buffer_size};
}

ServerConfig parse_server_config(std::string_view text, ConfigErrors& errors) {
  ServerConfig config;
  ConfigReader reader(text, errors);
  reader.require("file_system");
  read_file_system(reader.child("file_system"), config);
  read_servers(reader, config);
  read_storage(reader.child("storage"), config);
  if (reader.has("device")) read_device(reader.child("device"), config);
  read_timeouts(reader.child("client_timeouts"), config);
  reader.choose("log_level", &config.log_level, {"trace", "debug", "info", "warn", "error"});
  if (config.servers.size() > 1) {
    for (const ServerAddress& server : config.servers) {
      for (const std::string& address : server.addresses) {
        if (address.ends_with(":0")) {
          reader.report("servers",
                        fmt::format("'{}': port 0 needs a file system of one server", address));
        }
      }
    }
  }
  return config;
}

}  // namespace vpfs::dataserver
