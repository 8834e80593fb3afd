#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace vpfs::orangefs::test {

// Checks properties of the decoders on any bytes, taken as a payload. A decoded payload encodes to
// the same bytes, except undefined ones, and decodes to the same value again. summarise_io()
// accepts exactly the IO and SMALL_IO requests that decode_request() accepts, and agrees with it.
// Returns the broken property; nothing if all hold.
[[nodiscard]] std::optional<std::string> broken_property(std::span<const std::byte> payload);

}  // namespace vpfs::orangefs::test
