#pragma once

#include <cstddef>
#include <expected>
#include <span>

#include "protocols/orangefs/wire_archive.h"

namespace vpfs::orangefs {

// Like decode_request() and decode_response() of message.h. `trace` (may be null) receives the
// places of undefined bytes and lengths.
[[nodiscard]] std::expected<Request, DecodeError> decode_request(std::span<const std::byte> payload,
                                                                 WireTrace* trace);
[[nodiscard]] std::expected<Response, DecodeError> decode_response(
    std::span<const std::byte> payload, WireTrace* trace);

}  // namespace vpfs::orangefs
