#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "protocols/protocol.h"

namespace vpfs {

// The protocols by the names that configurations use: "beegfs", "orangefs".
[[nodiscard]] std::vector<std::string_view> protocol_names();
// What rules can look at, where the protocol shows it.
enum class Attribute : std::uint8_t {
  hint,
  file_system,
  uid,
  node,
  target,
  owner,
  directory,
  metadata,  // requests on names and attributes
};
[[nodiscard]] bool protocol_shows(std::string_view protocol, Attribute attribute);
// A conversation for one new connection; nothing for an unknown name. `seed` is one that peers
// cannot know (see FlatTable).
[[nodiscard]] std::unique_ptr<Conversation> make_conversation(std::string_view protocol,
                                                              std::uint64_t seed = 0);

}  // namespace vpfs
