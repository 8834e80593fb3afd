#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "protocols/protocol.h"

namespace vpfs {

// The protocols by the names that configurations use: "orangefs".
[[nodiscard]] std::vector<std::string_view> protocol_names();
// A conversation for one new connection; nothing for an unknown name.
[[nodiscard]] std::unique_ptr<Conversation> make_conversation(std::string_view protocol);

}  // namespace vpfs
