#include "stage/recorder/recorded.h"

#include <utility>

namespace vpfs::stage {

std::optional<Recorded> Recorded::from(const Words& words) {
  // Its last four bytes have a meaning each, and not all values have one.
  const auto small = std::bit_cast<std::array<std::uint8_t, 8>>(words.back());
  if (small[4] >= kIoKinds || small[5] > std::to_underlying(RecordedReason::kept_slot) ||
      small[6] > std::to_underlying(RecordedEnd::abandoned) || small[7] > 1) {
    return std::nullopt;
  }
  return std::bit_cast<Recorded>(words);
}

}  // namespace vpfs::stage
