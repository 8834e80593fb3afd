#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/recent_map.h"

namespace vpfs::proxy {

// Who has used each open file of each node: what the node's kernel writes back later carries no
// user of its own. A file that several users have used tells nothing. Bounded: files that have not
// been used for long are forgotten. May be called from any thread.
class OpenFileUsers {
 public:
  // The file as the protocol names it, with its node.
  [[nodiscard]] static std::uint64_t key(std::uint32_t node, std::string_view open_file);

  void saw(std::uint64_t key, std::uint32_t uid);
  [[nodiscard]] std::optional<std::uint32_t> only_user(std::uint64_t key);

 private:
  struct User {
    std::optional<std::uint32_t> uid;
    bool several = false;
  };
  RecentMap<User> users_;
};

}  // namespace vpfs::proxy
