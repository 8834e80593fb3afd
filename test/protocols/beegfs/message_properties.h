#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace vpfs::beegfs::test {

// Checks what must hold for any bytes given to the decoders as one message: what decodes encodes to
// the same bytes and decodes to the same again; a header needs 40 bytes at most; and of a write or
// read that decodes, decode_file_io() finds the same. The answer says what is broken; nothing when
// all is well.
[[nodiscard]] std::optional<std::string> broken_property(std::span<const std::byte> message);

}  // namespace vpfs::beegfs::test
