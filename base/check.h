#pragma once

namespace vpfs {

// Prints the broken invariant and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace vpfs

// Checks invariants of our own code in every build. Never use it for input from outside.
#define VPFS_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::vpfs::assertion_failed(#expression, __FILE__, __LINE__))

// The same in debug builds only, for costly checks of what the surrounding code guarantees.
#ifdef NDEBUG
#define VPFS_DEBUG_ASSERT(expression) static_cast<void>(0)
#else
#define VPFS_DEBUG_ASSERT(expression) VPFS_ASSERT(expression)
#endif
