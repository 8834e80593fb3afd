#include "base/byte_reader.h"

namespace vpfs {

std::string_view ByteReader::text(std::size_t size) {
  const std::span<const std::byte> run = bytes(size);
  return {reinterpret_cast<const char*>(run.data()), run.size()};
}

void ByteReader::align(std::size_t alignment) {
  const std::size_t past = offset_ % alignment;
  if (past != 0) skip(alignment - past);
}

}  // namespace vpfs
