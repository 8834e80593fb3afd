#pragma once

#include <cstddef>
#include <cstdint>

namespace vpfs {

// What a request does. Metadata requests work on names and attributes and move no file data.
enum class IoKind : std::uint8_t { read, write, metadata };
inline constexpr std::size_t kIoKinds = 3;

}  // namespace vpfs
