#include "protocols/registry.h"

#include "protocols/pvfs2/conversation.h"

namespace vpfs {

std::vector<std::string_view> protocol_names() {
  return {"orangefs"};
}

std::unique_ptr<Conversation> make_conversation(std::string_view protocol) {
  if (protocol == "orangefs") return std::make_unique<pvfs2::Pvfs2Conversation>();
  return nullptr;
}

}  // namespace vpfs
