#pragma once

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "schedulers/request.h"
#include "schedulers/share.h"
#include "stage/history/measures.h"

namespace vpfs::insight {

// What one virtual PFS would have taken of the data server in some time.
struct Wish {
  std::uint64_t weight = 1;  // at least 1
  Cost demand = 0;           // allocation::kUnbounded: all that it could get
  Cost least = 0;            // that it was promised, if it wanted so much
  Cost elsewhere = 0;        // that other data servers did for it, if the total is shared
};

// What a virtual PFS wanted in some time by what it did in it, and by its share. It wants all that
// it can get if others, or a full data server, held it for half of the time. REQUIRES: the queued
// bytes of `sums` are those at the end of the time.
[[nodiscard]] Wish wish_of(const stage::Measures& sums, const Share& share, Duration length);

// Writes to `got` what each is entitled to of `amount`: the weighted max-min of the demands, but
// none that wants it less than what it was promised. What each had elsewhere counts as if it had
// been given here. If more was promised than there is, those that come first have it. REQUIRES:
// got.size() == wishes.size().
void entitle(Cost amount, std::span<const Wish> wishes, std::span<Cost> got);

}  // namespace vpfs::insight
