#pragma once

#include <cstddef>

namespace vpfs {

// Fetches the cache lines that an object begins with, for loops over thousands of objects, of which
// none is in the caches: called for one that comes soon. Any pointer may be given.
template <std::size_t kLines>
void prefetch(const void* object) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < kLines; ++i) {
    __builtin_prefetch(static_cast<const char*>(object) + i * kLine);
  }
}

}  // namespace vpfs
