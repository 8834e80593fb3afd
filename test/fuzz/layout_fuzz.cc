#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/layout/host_list.h"
#include "fuse/layout/layout.h"
#include "test/fuzz/require.h"

// What users write for vpfs-mount to read: the host list of a job, and the layout of a directory.
// The first byte says which, the second how often the text is repeated.
namespace vpfs::fuse {
namespace {

using test::require;

constexpr std::size_t kMostRepeated = std::size_t{1} << 17;

const std::vector<LayoutServer>& all_servers() {
  static const std::vector<LayoutServer> all = {
      {.alias = "s0", .host = "n1", .is_local = true},
      {.alias = "s1", .host = "N2.site.org", .is_local = false},
      {.alias = "10", .host = "10.0.0.1", .is_local = false},
      {.alias = "n1.a", .host = "n1.b", .is_local = false}};
  return all;
}

const LayoutServers& servers() {
  static const LayoutServers index(all_servers());
  return index;
}

void check_hosts(std::string_view list) {
  const Result<std::vector<std::string>> hosts = hosts_in(list);
  const Result<std::vector<bool>> on = servers().on_nodes(list);
  require(hosts.has_value() == on.has_value(), "a list is read in one way only");
  if (!hosts) {
    require(hosts.error().message.size() < 200, "a long error");
    return;
  }
  require(hosts->size() <= kMostHosts, "too many hosts");
  std::size_t bytes = 0;
  for (const std::string& host : *hosts) {
    require(!host.empty() && host.size() <= kLongestHost, "a name is empty or too long");
    require(host.find_first_of("[],") == std::string::npos, "a name with a bracket");
    bytes += host.size();
  }
  require(bytes <= kMostHostBytes, "too long names");
  for (std::size_t i = 0; i < all_servers().size(); ++i) {
    const LayoutServer& server = all_servers()[i];
    const bool is_on = std::ranges::any_of(*hosts, [&](const std::string& host) {
      return is_same_host(server.host, host) || is_same_host(server.alias, host);
    });
    require((*on)[i] == is_on, "a server is on a node of another name");
  }
}

void check_layout_text(std::string_view text) {
  const Result<Layout> layout = parse_layout(text);
  if (!layout) {
    require(layout.error().message.size() < 700, "a long error");  // control characters are escaped
    return;
  }
  const Result<Layout> again = parse_layout(to_text(*layout));
  require(again && *again == *layout, "a printed layout is read as another one");
  const std::vector<bool> on_job = {true, false, true, false};
  std::vector<std::size_t> chosen =
      servers_for(*layout, servers(), {.key = "job", .job_servers = &on_job});
  std::ranges::sort(chosen);
  require(std::ranges::adjacent_find(chosen) == chosen.end(), "a server twice");
  require(chosen.empty() || chosen.back() < servers().size(), "a server that is not there");
  if (const Result<void> known = check_layout(*layout, servers()); !known) {
    require(known.error().message.size() < 400, "a long error");
  }
}

}  // namespace
}  // namespace vpfs::fuse

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::string all;
  for (std::size_t i = 0; i <= data[1] && all.size() + text.size() <= vpfs::fuse::kMostRepeated;
       ++i) {
    all += text;
  }
  if (data[0] % 2 == 0) {
    vpfs::fuse::check_hosts(all);
  } else {
    vpfs::fuse::check_layout_text(all);
  }
  return 0;
}
