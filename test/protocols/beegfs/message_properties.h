#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace vpfs::beegfs::test {

// Checks properties of the decoders on any bytes, taken as one message. A decoded message encodes
// to the same bytes and decodes to the same value again; a header needs at most 40 bytes;
// decode_file_io() agrees on reads and writes. Returns the broken property; nothing if all hold.
[[nodiscard]] std::optional<std::string> broken_property(std::span<const std::byte> message);

}  // namespace vpfs::beegfs::test
