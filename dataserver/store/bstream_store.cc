#include "dataserver/store/bstream_store.h"

#include <cerrno>

namespace vpfs::dataserver {

Outcome<std::int64_t> checked_end(std::int64_t offset, std::int64_t size) {
  constexpr std::int64_t kMostSize = std::int64_t{1} << 60;
  if (offset < 0 || size < 0) return refuse(EINVAL);
  if (offset > kMostSize - size) return refuse(EFBIG);
  return offset + size;
}

}  // namespace vpfs::dataserver
