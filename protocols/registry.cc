#include "protocols/registry.h"

#include <algorithm>
#include <array>

#include "protocols/beegfs/conversation.h"
#include "protocols/beegfs/transcript.h"
#include "protocols/orangefs/conversation.h"
#include "protocols/orangefs/transcript.h"

namespace vpfs {
namespace {

constexpr std::array kProtocols = {
    Protocol{.name = "beegfs",
             .attributes = {Attribute::uid, Attribute::node, Attribute::target, Attribute::owner,
                            Attribute::directory},
             .make_conversation = [](std::uint64_t) -> std::unique_ptr<Conversation> {
               return std::make_unique<beegfs::BeegfsConversation>();
             },
             .recognise = beegfs::recognise,
             .make_transcript = beegfs::make_transcript},
    Protocol{.name = "orangefs",
             .attributes = {Attribute::hint, Attribute::file_system, Attribute::uid,
                            Attribute::metadata},
             .make_conversation = [](std::uint64_t seed) -> std::unique_ptr<Conversation> {
               return std::make_unique<orangefs::OrangefsConversation>(seed);
             },
             .recognise = orangefs::recognise,
             .make_transcript = orangefs::make_transcript},
};

}  // namespace

std::span<const Protocol> protocols() {
  return kProtocols;
}

const Protocol* find_protocol(std::string_view name) {
  const auto* const found = std::ranges::find(kProtocols, name, &Protocol::name);
  return found == kProtocols.end() ? nullptr : found;
}

}  // namespace vpfs
