#pragma once

#include <cstddef>
#include <cstdint>

namespace vpfs {

// Fetches the cache lines that an object begins with, for loops over thousands of objects, of which
// none is in the caches: called for one that comes soon. Null does no harm, nor does an object that
// is shorter.
template <std::size_t kLines>
void prefetch(const void* object) {
  constexpr std::size_t kLine = 64;
  // As a number, since there may be no object at these addresses.
  const auto first = reinterpret_cast<std::uintptr_t>(object);
  for (std::size_t i = 0; i < kLines; ++i) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + i * kLine));
  }
}

}  // namespace vpfs
