#include "test/fuzz/require.h"

#include <cstdio>
#include <cstdlib>

namespace vpfs::test {

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace vpfs::test
