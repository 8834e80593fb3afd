#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

// Reads "disperse", "affinity:K", "local", "internal", "external" or "list:NAME:NAME...". The error
// names the word.
[[nodiscard]] Result<Layout> parse_layout(std::string_view text);
[[nodiscard]] std::string to_text(const Layout& layout);

// A data server of the file system.
struct LayoutServer {
  std::string alias;
  std::string host;       // of its address
  bool is_local = false;  // on this node
};

// Who makes a file.
struct Maker {
  std::string_view key;                // of its affinity: its job or its node
  std::span<const std::string> nodes;  // of its job; empty: unknown
};

// The servers for a new file, as indices in `servers`, in the order of its stripes. Empty: all, in
// the order that the file system chooses, which is also the answer where none would do: no server
// is on the node, or the job's nodes are unknown.
[[nodiscard]] std::vector<std::size_t> servers_for(const Layout& layout,
                                                   std::span<const LayoutServer> servers,
                                                   const Maker& maker);

// An error that names the first server of a list that the file system does not have.
[[nodiscard]] Result<void> check_layout(const Layout& layout,
                                        std::span<const LayoutServer> servers);

}  // namespace vpfs::fuse
