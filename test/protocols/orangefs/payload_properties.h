#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace vpfs::orangefs::test {

// Checks what must hold for any bytes given to the decoders as a payload: what decodes encodes to
// the same bytes but for undefined ones, and decodes to the same again; and summarise_io() accepts
// exactly the IO and SMALL_IO requests that decode_request() accepts, and agrees with it. The
// answer says what is broken; nothing when all is well.
[[nodiscard]] std::optional<std::string> broken_property(std::span<const std::byte> payload);

}  // namespace vpfs::orangefs::test
