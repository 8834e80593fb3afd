#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "protocols/protocol.h"

namespace vpfs {

// The protocols by the names that configurations use: "beegfs", "orangefs".
[[nodiscard]] std::vector<std::string_view> protocol_names();
// What rules can look at; nothing for an unknown name.
[[nodiscard]] Attributes protocol_attributes(std::string_view protocol);
// A conversation for one new connection; nothing for an unknown name. `seed` is one that peers
// cannot know (see FlatTable).
[[nodiscard]] std::unique_ptr<Conversation> make_conversation(std::string_view protocol,
                                                              std::uint64_t seed = 0);

}  // namespace vpfs
