#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "dataserver/beegfs/storage_context.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::dataserver {

// Whether a storage server understands the message: its type, and every bit of its feature flags.
[[nodiscard]] bool is_understood(const beegfs::MessageHeader& header);

// The one message that answers a request that is neither a read nor a write; empty where there is
// none by the protocol, nothing when the body makes no sense.
[[nodiscard]] std::optional<std::vector<std::byte>> answer_to(StorageContext& context,
                                                              const beegfs::MessageHeader& header,
                                                              std::span<const std::byte> message);

}  // namespace vpfs::dataserver
