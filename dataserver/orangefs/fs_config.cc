#include "dataserver/orangefs/fs_config.h"

#include <utility>

#include <fmt/ranges.h>

#include "base/joined.h"

namespace vpfs::dataserver {

orangefs::FsConfig fs_config(const ServerConfig& config, const HandleRanges& ranges) {
  const std::size_t datafiles = config.datafiles == 0 ? config.servers.size() : config.datafiles;
  orangefs::FsConfig::FileSystem file_system{
      .name = config.name,
      .id = config.id,
      .root = HandleRanges::kRoot,
      .default_datafiles = static_cast<std::uint32_t>(datafiles),
      .flow_buffer_size = config.flow_buffer_size.count,
      .strip_size = static_cast<std::int64_t>(config.strip_size.count),
      .meta = {},
      .data = {}};
  orangefs::FsConfig said{
      .client_job_timeout = config.client_job_timeout,
      .client_flow_timeout = config.client_flow_timeout,
      .client_retry_limit = static_cast<std::uint32_t>(config.client_retry_limit),
      .client_retry_delay = config.client_retry_delay,
      .aliases = {},
      .file_systems = {}};
  for (std::uint32_t i = 0; i < ranges.servers(); ++i) {
    const ServerAddress& server = config.servers[i];
    said.aliases.push_back({.name = server.alias,
                            .addresses = server.addresses,
                            .text = joined(server.addresses, ",")});
    file_system.meta.push_back({.alias = server.alias, .extents = {ranges.meta(i)}});
    file_system.data.push_back({.alias = server.alias, .extents = {ranges.data(i)}});
  }
  said.file_systems.push_back(std::move(file_system));
  return said;
}

}  // namespace vpfs::dataserver
