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

// The message that answers a request other than a read or write. An empty message means that the
// protocol has no answer; no message means that the body is malformed.
[[nodiscard]] std::optional<std::vector<std::byte>> answer_to(StorageContext& context,
                                                              const beegfs::MessageHeader& header,
                                                              std::span<const std::byte> message);

}  // namespace vpfs::dataserver
