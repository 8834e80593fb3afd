#pragma once

#include <cstddef>
#include <expected>
#include <span>

#include "protocols/orangefs/wire_archive.h"

namespace vpfs::orangefs {

// As decode_request() and decode_response() of message.h; `trace` (may be null) learns where the
// undefined bytes and the lengths are.
[[nodiscard]] std::expected<Request, DecodeError> decode_request(std::span<const std::byte> payload,
                                                                 WireTrace* trace);
[[nodiscard]] std::expected<Response, DecodeError> decode_response(
    std::span<const std::byte> payload, WireTrace* trace);

}  // namespace vpfs::orangefs
