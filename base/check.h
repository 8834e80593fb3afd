#pragma once

namespace vpfs {

// Prints the broken invariant and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace vpfs

// For invariants of our own code, in every build. Never for anything that came from outside.
#define VPFS_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::vpfs::assertion_failed(#expression, __FILE__, __LINE__))
