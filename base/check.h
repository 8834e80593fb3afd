#pragma once

namespace vpfs {

// Prints the broken invariant and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace vpfs

// For invariants of our own code, in every build. Never for anything that came from outside.
#define VPFS_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::vpfs::assertion_failed(#expression, __FILE__, __LINE__))

// The same, in debug builds only: for what costs time and the code around it has made sure of.
#ifdef NDEBUG
#define VPFS_DEBUG_ASSERT(expression) static_cast<void>(0)
#else
#define VPFS_DEBUG_ASSERT(expression) VPFS_ASSERT(expression)
#endif
