#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/device_model.h"
#include "base/units.h"
#include "dataserver/store/engine.h"

namespace vpfs::dataserver {

struct ServerAddress {
  std::string alias;
  std::vector<std::string> addresses;  // "tcp://host:port"; the first is where the server listens

  // HOST:PORT of the first address.
  [[nodiscard]] std::string listen_address() const;
};

// Everything that conf/server.yaml says. All servers of a file system read the same file.
struct ServerConfig {
  std::string name = "vpfs";
  std::int32_t id = 0;
  Bytes strip_size{64 * kKiB};
  Bytes flow_buffer_size{256 * kKiB};
  std::uint64_t datafiles = 0;  // 0: all servers
  std::vector<ServerAddress> servers;

  EngineKind engine = EngineKind::memory;
  std::string path;
  Bytes capacity{4 * kGiB};
  std::optional<DeviceSettings> device;  // the modelled device behind the engine

  Duration client_job_timeout = std::chrono::seconds(300);
  Duration client_flow_timeout = std::chrono::seconds(300);
  std::uint64_t client_retry_limit = 5;
  Duration client_retry_delay = std::chrono::seconds(2);
  std::string log_level = "info";

  [[nodiscard]] std::optional<std::uint32_t> find_server(std::string_view alias) const;
  // The settings of server `self`, whose directory is <path>/<alias>.
  [[nodiscard]] EngineSettings engine_settings(std::uint32_t self) const;
};

inline constexpr std::size_t kMostServers = 64;

// Reads a configuration text. The value is complete only if `errors` stays empty.
[[nodiscard]] ServerConfig parse_server_config(std::string_view text, ConfigErrors& errors);

}  // namespace vpfs::dataserver
