#include "client/orangefs/calls/mount_config.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "client/orangefs/calls/mount_address.h"
#include "protocols/orangefs/fs_config.h"

namespace vpfs::client {
namespace {

using orangefs::FsConfig;
using Extents = std::vector<orangefs::HandleExtent>;

template <typename... Args>
std::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail("file system configuration: " + fmt::format(format, std::forward<Args>(args)...));
}

// Gives ranges of handles to servers, which it adds as they are first named.
class Placement {
 public:
  Placement(const FsConfig& config, std::string_view scheme);

  [[nodiscard]] Result<void> place(const std::vector<FsConfig::Range>& ranges,
                                   Extents MountConfig::Server::*into);
  [[nodiscard]] std::vector<MountConfig::Server> servers() && { return std::move(servers_); }

 private:
  [[nodiscard]] Result<std::size_t> server(const std::string& alias);

  std::string_view scheme_;
  struct Address {
    std::string alias_text;
    std::string host_port;  // empty: none of the scheme
  };
  std::map<std::string_view, Address> addresses_;          // by alias
  std::map<std::string, std::size_t, std::less<>> known_;  // by alias, where in servers_
  std::vector<MountConfig::Server> servers_;
};

Placement::Placement(const FsConfig& config, std::string_view scheme) : scheme_(scheme) {
  for (const FsConfig::Alias& alias : config.aliases) {
    Address& own = addresses_[alias.name];
    own.alias_text = alias.text;
    for (const std::string& text : alias.addresses) {
      const Result<ServerAddress> address = parse_server_address(text);
      if (address && address->scheme == scheme) own.host_port = address->host_port;
    }
  }
}

Result<std::size_t> Placement::server(const std::string& alias) {
  if (const auto known = known_.find(alias); known != known_.end()) return known->second;
  const auto address = addresses_.find(alias);
  if (address == addresses_.end()) return wrong("'{}' is not an Alias", alias);
  if (address->second.host_port.empty())
    return wrong("Alias {} has no {}:// address", alias, scheme_);
  servers_.push_back({.alias = alias,
                      .alias_text = address->second.alias_text,
                      .host_port = address->second.host_port,
                      .meta = {},
                      .data = {}});
  return known_.emplace(alias, servers_.size() - 1).first->second;
}

Result<void> Placement::place(const std::vector<FsConfig::Range>& ranges,
                              Extents MountConfig::Server::*into) {
  for (const FsConfig::Range& range : ranges) {
    const Result<std::size_t> index = server(range.alias);
    VPFS_TRY(index);
    Extents& extents = servers_[*index].*into;
    extents.insert(extents.end(), range.extents.begin(), range.extents.end());
  }
  return {};
}

}  // namespace

std::optional<std::size_t> MountConfig::server_of(orangefs::Handle handle) const {
  const auto holds = [handle](const std::vector<orangefs::HandleExtent>& extents) {
    return std::any_of(extents.begin(), extents.end(),
                       [handle](const orangefs::HandleExtent& extent) {
                         return extent.first <= handle && handle <= extent.last;
                       });
  };
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (holds(servers[i].meta) || holds(servers[i].data)) return i;
  }
  return std::nullopt;
}

Result<MountConfig> read_mount_config(std::string_view text, std::string_view file_system,
                                      std::string_view scheme) {
  const orangefs::FsConfigReading reading = orangefs::read_fs_config(text);
  if (reading.problem) return fail("file system configuration, " + reading.problem->message);
  const FsConfig& all = reading.config;
  const auto found = std::ranges::find(all.file_systems, file_system, &FsConfig::FileSystem::name);
  if (found == all.file_systems.end()) {
    return fail(fmt::format("the servers have no file system '{}'", file_system));
  }
  Placement placement(all, scheme);
  Result<void> placed = placement.place(found->meta, &MountConfig::Server::meta);
  if (placed) placed = placement.place(found->data, &MountConfig::Server::data);
  VPFS_TRY(placed);
  MountConfig config;
  config.name = found->name;
  config.fs_id = found->id.value_or(config.fs_id);
  config.root = found->root;
  config.servers = std::move(placement).servers();
  config.flow_buffer_size = found->flow_buffer_size;
  config.strip_size = found->strip_size;
  config.default_datafiles = found->default_datafiles;
  config.job_timeout = all.client_job_timeout.value_or(config.job_timeout);
  config.flow_timeout = all.client_flow_timeout.value_or(config.flow_timeout);
  config.retry_limit = all.client_retry_limit.value_or(config.retry_limit);
  config.retry_delay = all.client_retry_delay.value_or(config.retry_delay);
  if (std::ranges::all_of(config.servers, [](const auto& each) { return each.meta.empty(); })) {
    return fail(fmt::format("file system '{}': no server has metadata", config.name));
  }
  if (!config.server_of(config.root)) {
    return fail(fmt::format("file system '{}': no server holds the root handle {}", config.name,
                            config.root));
  }
  return config;
}

}  // namespace vpfs::client
