#include "protocols/registry.h"

#include "protocols/beegfs/conversation.h"
#include "protocols/orangefs/conversation.h"

namespace vpfs {

std::vector<std::string_view> protocol_names() {
  return {"beegfs", "orangefs"};
}

Attributes protocol_attributes(std::string_view protocol) {
  if (protocol == "orangefs") {
    return {Attribute::hint, Attribute::file_system, Attribute::uid, Attribute::metadata};
  }
  if (protocol == "beegfs") {
    return {Attribute::uid, Attribute::node, Attribute::target, Attribute::owner,
            Attribute::directory};
  }
  return {};
}

std::unique_ptr<Conversation> make_conversation(std::string_view protocol, std::uint64_t seed) {
  if (protocol == "orangefs") return std::make_unique<orangefs::OrangefsConversation>(seed);
  if (protocol == "beegfs") return std::make_unique<beegfs::BeegfsConversation>();
  return nullptr;
}

}  // namespace vpfs
