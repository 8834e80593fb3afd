#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/attributes.h"
#include "protocols/protocol.h"
#include "protocols/transcript.h"

namespace vpfs {

// Everything that the programs need from a wire protocol.
struct Protocol {
  std::string_view name;  // as configurations and vpfs-decode give it
  Attributes attributes;  // those that requests show and rules can match
  // Makes a conversation for a new connection. Peers cannot know the seed (see FlatTable).
  std::unique_ptr<Conversation> (*make_conversation)(std::uint64_t seed);
  Recognition (*recognise)(std::span<const std::byte> first_bytes);
  std::unique_ptr<Transcript> (*make_transcript)(bool with_details);
};

// Every protocol, sorted by name.
[[nodiscard]] std::span<const Protocol> protocols();
// Null for an unknown name.
[[nodiscard]] const Protocol* find_protocol(std::string_view name);

}  // namespace vpfs
