#pragma once

#include <cstdint>
#include <span>

#include "schedulers/request.h"

namespace vpfs::insight {

// What one virtual PFS would have taken of the data server in some time.
struct Wish {
  std::uint64_t weight = 1;  // at least 1
  Cost demand = 0;           // allocation::kUnbounded: all that it could get
  Cost least = 0;            // that it was promised, if it wanted so much
};

// Writes to `got` what each is entitled to of `amount`: the weighted max-min of the demands, but
// none that wants it less than what it was promised. If more was promised than there is, those that
// come first have it. REQUIRES: got.size() == wishes.size().
void entitle(Cost amount, std::span<const Wish> wishes, std::span<Cost> got);

}  // namespace vpfs::insight
