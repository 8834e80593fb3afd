#include "proxy/pump/spare_memory.h"

#include <algorithm>

#include <malloc.h>

namespace vpfs::proxy {
namespace {
constexpr std::size_t kMuch = std::size_t{1} << 20;
}  // namespace

void SpareMemory::look() {
  const struct mallinfo2 now = ::mallinfo2();
  const std::size_t spare = std::min(now.fordblks, free_before_);
  free_before_ = now.fordblks;
  // The last call could not return this memory: it is between blocks in use.
  if (spare < kept_ + std::max(kMuch, now.uordblks / 4)) {
    kept_ = std::min(kept_, now.fordblks);
    return;
  }
  (void)::malloc_trim(0);
  kept_ = ::mallinfo2().fordblks;
  free_before_ = 0;
}

}  // namespace vpfs::proxy
