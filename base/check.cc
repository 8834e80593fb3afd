#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace vpfs {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, expression);
  std::abort();
}

}  // namespace vpfs
