#include "stage/recorder/recorded.h"

#include <algorithm>
#include <utility>

namespace vpfs::stage {

RecordedReason reason_of(const HoldTimes& held) {
  const auto longest =
      std::ranges::max(kHoldReasons, {}, [&](HoldReason reason) { return held.of(reason); });
  if (held.of(longest) <= Duration::zero()) return RecordedReason::nothing;
  switch (longest) {
    case HoldReason::limit:
      return RecordedReason::limit;
    case HoldReason::share:
      return RecordedReason::share;
    case HoldReason::depth:
      return RecordedReason::depth;
    case HoldReason::traffic_class:
      return RecordedReason::traffic_class;
  }
  return RecordedReason::nothing;
}

std::optional<Recorded> Recorded::from(const Words& words) {
  // Its last four bytes have a meaning each, and not all values have one.
  const auto small = std::bit_cast<std::array<std::uint8_t, 8>>(words.back());
  if (small[4] >= kIoKinds || small[5] > std::to_underlying(RecordedReason::traffic_class) ||
      small[6] > std::to_underlying(RecordedEnd::abandoned) || small[7] > 1) {
    return std::nullopt;
  }
  return std::bit_cast<Recorded>(words);
}

std::uint32_t Recorded::ticks(Duration time) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time / kTick, 0, kMost));
}

}  // namespace vpfs::stage
