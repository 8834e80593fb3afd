#pragma once

#include <algorithm>
#include <cstdint>

namespace vpfs::sim {

// Bytes of a file that its datafile number `index` holds of the first `end` bytes, striped over
// `datafiles` in strips of `strip` bytes: simple_stripe of OrangeFS. REQUIRES: strip > 0,
// index < datafiles.
[[nodiscard]] constexpr std::uint64_t bytes_on_datafile(std::uint64_t end, std::uint64_t strip,
                                                        std::uint64_t datafiles,
                                                        std::uint64_t index) {
  const std::uint64_t row = strip * datafiles;
  const std::uint64_t rest = end % row;
  const std::uint64_t before = strip * index;
  return end / row * strip + (rest > before ? std::min(rest - before, strip) : 0);
}

}  // namespace vpfs::sim
