#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/saved/saved_state.h"
#include "proxy/recent_map.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

// The users of each open file of each node at an address: no peer changes those of another. Data
// that the node's kernel writes back later carries no user. A file with several users has no
// answer. Files that have not been used for long are forgotten, so the memory is bounded. Any
// thread may call it.
class OpenFileUsers {
 public:
  // The key of a file, as the protocol names it, on a node at the client's address.
  [[nodiscard]] static std::uint64_t key(const stage::Address& client, std::uint32_t node,
                                         std::string_view open_file);

  void saw(std::uint64_t key, std::uint32_t uid);
  [[nodiscard]] std::optional<std::uint32_t> only_user(std::uint64_t key);
  // For a successor.
  [[nodiscard]] SavedState::Numbers save();
  void restore(const SavedState::Numbers& from);

 private:
  struct User {
    std::optional<std::uint32_t> uid;
    bool several = false;
  };
  RecentMap<User> users_;
};

}  // namespace vpfs::proxy
