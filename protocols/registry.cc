#include "protocols/registry.h"

#include "protocols/beegfs/conversation.h"
#include "protocols/pvfs2/conversation.h"

namespace vpfs {

std::vector<std::string_view> protocol_names() {
  return {"beegfs", "orangefs"};
}

bool protocol_shows(std::string_view protocol, Attribute attribute) {
  switch (attribute) {
    case Attribute::uid:
      return true;
    case Attribute::hint:
    case Attribute::file_system:
    case Attribute::metadata:
      return protocol == "orangefs";
    case Attribute::node:
    case Attribute::target:
    case Attribute::owner:
    case Attribute::directory:
      return protocol == "beegfs";
  }
  return false;
}

std::unique_ptr<Conversation> make_conversation(std::string_view protocol, std::uint64_t seed) {
  if (protocol == "orangefs") return std::make_unique<pvfs2::Pvfs2Conversation>(seed);
  if (protocol == "beegfs") return std::make_unique<beegfs::BeegfsConversation>();
  return nullptr;
}

}  // namespace vpfs
