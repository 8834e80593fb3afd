#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vpfs::stage {

struct NumberRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // not below `first`
  std::size_t digits = 1;  // at least; more for numbers written with zeros in front

  bool operator==(const NumberRange&) const = default;
};

// Reads "1-128", "7" or "1-3,9,20-30". No number is above `most`. The error says what is wrong in
// half a sentence.
[[nodiscard]] Result<std::vector<NumberRange>> number_ranges(std::string_view text,
                                                             std::uint64_t most);

}  // namespace vpfs::stage
