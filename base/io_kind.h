#pragma once

#include <cstddef>
#include <cstdint>

namespace vpfs {

// What a request does. Metadata: it works on names and attributes, and moves no file data.
enum class IoKind : std::uint8_t { read, write, metadata };
inline constexpr std::size_t kIoKinds = 3;

}  // namespace vpfs
