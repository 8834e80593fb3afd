#include "fuse/orangefs/placement.h"

#include <algorithm>
#include <array>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/result.h"
#include "fuse/orangefs/mount_worker.h"
#include "net/endpoint.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::size_t kMostPlaces = 4096;
constexpr std::size_t kMostKnownBytes = std::size_t{16} << 20;  // of names in lists

// That the layout takes besides the object itself.
std::size_t bytes_of(const std::optional<Layout>& layout) {
  std::size_t bytes = 0;
  if (!layout) return bytes;
  for (const std::string& name : layout->names) bytes += sizeof name + name.size();
  return bytes;
}

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;  // NOLINT
    } else if (family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;  // NOLINT
    }
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (address != nullptr && ::inet_ntop(family, address, text.data(), text.size()) != nullptr) {
      all.emplace_back(text.data());
    }
  }
  ::freeifaddrs(first);
  return all;
}

bool is_here(const std::string& host_port, const std::vector<std::string>& own) {
  const Result<net::Endpoint> endpoint = net::resolve_endpoint(host_port);
  if (!endpoint) return false;
  return std::ranges::find(own, endpoint->address().to_string()) != own.end();
}

LayoutServers data_servers(const client::MountConfig& config) {
  const std::vector<std::string> own = own_addresses();
  std::vector<LayoutServer> servers;
  for (const client::MountConfig::Server& server : config.servers) {
    if (server.data.empty()) continue;
    servers.push_back({.alias = server.alias,
                       .host = server.host_port.substr(0, server.host_port.rfind(':')),
                       .is_local = is_here(server.host_port, own)});
  }
  return LayoutServers(std::move(servers));
}

}  // namespace

Result<void> Placement::check(const Layout& layout, const client::MountConfig& config) {
  return check_layout(layout, data_servers(config));
}

Placement::Placement(Layout layout, const client::MountConfig& config, Duration believed,
                     const Clock& clock)
    : layout_(std::move(layout)),
      servers_(data_servers(config)),
      node_(host_name()),
      believed_(believed),
      clock_(clock),
      job_servers_(servers_, clock) {
  for (std::size_t i = 0; i < config.servers.size(); ++i) {
    aliases_.push_back(config.servers[i].alias);
    if (!config.servers[i].data.empty()) indices_.push_back(i);
  }
}

net::Task<std::vector<std::size_t>> Placement::servers_for(client::FileSystem& servers,
                                                           orangefs::Handle directory,
                                                           pid_t process) {
  const std::optional<Layout> own = co_await layout_of(servers, directory);
  const Layout& layout = own ? *own : layout_;
  JobServers::Answer job_servers;
  if (layout.kind == Layout::Kind::internal || layout.kind == Layout::Kind::external) {
    MountWorker::current().call_for_help();  // as in Callers::of()
    const client::Caller& caller = *servers.caller();
    job_servers = job_servers_.of(process, caller.uid, caller.gid);
  }
  const std::string& jobid = servers.caller()->jobid;
  const Maker maker{.key = jobid.empty() ? node_ : jobid, .job_servers = job_servers.get()};
  std::vector<std::size_t> chosen = fuse::servers_for(layout, servers_, maker);
  for (std::size_t& each : chosen) each = indices_[each];
  co_return chosen;
}

net::Task<std::optional<Layout>> Placement::layout_of(client::FileSystem& servers,
                                                      orangefs::Handle directory) {
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(directory);
    if (found != known_.end() && now < found->second.until) co_return found->second.layout;
  }
  std::string name(kLayoutName);
  const Result<std::string> text = co_await servers.get_extended(directory, std::move(name));
  std::optional<Layout> layout;
  if (text) {
    Result<Layout> read = parse_layout(*text);
    if (read) layout = std::move(*read);
  }
  const std::lock_guard lock(mutex_);
  remember(directory, layout, now + believed_);
  co_return layout;
}

void Placement::remember(orangefs::Handle directory, const std::optional<Layout>& layout,
                         TimePoint until) {
  const std::size_t bytes = bytes_of(layout);
  if (known_.size() >= kMostPlaces || known_bytes_ + bytes > kMostKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  Known& known = known_[directory];
  known_bytes_ += bytes - bytes_of(known.layout);
  known = {.layout = layout, .until = until};
}

void Placement::forget(orangefs::Handle directory) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(directory);
  if (found == known_.end()) return;
  known_bytes_ -= bytes_of(found->second.layout);
  known_.erase(found);
}

Result<void> Placement::check(std::string_view text) const {
  const Result<Layout> layout = parse_layout(text);
  VPFS_TRY(layout);
  return check_layout(*layout, servers_);
}

std::string Placement::text_of(const std::vector<std::size_t>& servers) const {
  std::vector<std::string_view> names;
  for (const std::size_t each : servers) names.emplace_back(aliases_[each]);
  return fmt::format("list:{}", fmt::join(names, ":"));
}

}  // namespace vpfs::fuse::pvfs
