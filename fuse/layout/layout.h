#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace vpfs::fuse {

// Where the data of new files go: -o layout= of a mount, or `user.vpfs.layout` of a directory.
struct Layout {
  enum class Kind : std::uint8_t {
    disperse,  // to all servers
    affinity,  // to `servers` of them, always the same for one job (or one node, without a job)
    local,     // to the servers on this node
    internal,  // to the servers on the job's own nodes
    external,  // to all but these
    list,      // to those that are named
  };

  Kind kind = Kind::disperse;
  std::size_t servers = 0;              // of affinity
  std::vector<std::string> names = {};  // of list

  bool operator==(const Layout&) const = default;
};

// The servers that a list names, at most, and the K of an affinity.
inline constexpr std::size_t kMostLayoutServers = 4096;

// Reads "disperse", "affinity:K", "local", "internal", "external" or "list:NAME[:NAME...]". The
// error names the word and what is expected.
[[nodiscard]] Result<Layout> parse_layout(std::string_view text);
[[nodiscard]] std::string to_text(const Layout& layout);

// A data server of the file system.
struct LayoutServer {
  std::string alias;
  std::string host;       // of its address
  bool is_local = false;  // on this node
};

// The data servers of a file system, which are found by name. Does not change after construction.
class LayoutServers {
 public:
  explicit LayoutServers(std::vector<LayoutServer> servers);

  [[nodiscard]] const std::vector<LayoutServer>& all() const { return servers_; }
  [[nodiscard]] std::size_t size() const { return servers_.size(); }
  // The index of the server with this alias.
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view alias) const;
  // For each server whether its alias or its host is that of a node in a host list (host_list.h),
  // as is_same_host() has it. Takes a time that grows with the hosts, not with the servers. The
  // errors are those of for_each_host().
  [[nodiscard]] Result<std::vector<bool>> on_nodes(std::string_view host_list) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Names = std::unordered_map<std::string, std::vector<std::size_t>, Hash, std::equal_to<>>;

  void add_name(std::string_view name, std::size_t index);

  std::vector<LayoutServer> servers_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_alias_;
  Names by_name_;   // aliases and hosts in small letters
  Names by_label_;  // the first label of those that have several
};

// The process that makes a file.
struct Maker {
  std::string_view key;  // of its affinity: its job or its node
  // For each server whether it is on a node of the job; null: the nodes are unknown.
  const std::vector<bool>* job_servers = nullptr;
};

// The servers for a new file, as indices in `servers`, in the order of its stripes. Empty: all, in
// the order that the file system chooses, which is also the answer where none would do: no server
// is on the node, or the job's nodes are unknown.
[[nodiscard]] std::vector<std::size_t> servers_for(const Layout& layout,
                                                   const LayoutServers& servers,
                                                   const Maker& maker);

// An error that names the first server of a list that the file system does not have.
[[nodiscard]] Result<void> check_layout(const Layout& layout, const LayoutServers& servers);

}  // namespace vpfs::fuse
