#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/io_kind.h"
#include "schedulers/hold_times.h"

namespace vpfs::stage {

// How a request ended.
enum class RecordedEnd : std::uint8_t {
  done,
  failed,     // the data server answered with an error
  refused,    // held up to its deadline, or beyond what its client may have held
  abandoned,  // its client gave it up
};

// What held a request longest.
enum class RecordedReason : std::uint8_t { nothing, limit, share, depth, traffic_class, kept_slot };
[[nodiscard]] inline RecordedReason reason_of(const HoldTimes& held) {
  RecordedReason reason = RecordedReason::nothing;
  Duration longest = {};
  const auto consider = [&](RecordedReason other, Duration time) {
    if (time <= longest) return;
    longest = time;
    reason = other;
  };
  consider(RecordedReason::limit, held.limit);
  consider(RecordedReason::share, held.share);
  consider(RecordedReason::depth, held.depth);
  consider(RecordedReason::traffic_class, held.traffic_class);
  consider(RecordedReason::kept_slot, held.kept_slot);
  return reason;
}

// One request, from its arrival to its end, as a Recorder keeps it. Copied to control ports in this
// form, as little-endian words.
struct Recorded {
  static constexpr std::uint64_t kNoOffset = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kNoUser = std::numeric_limits<std::uint32_t>::max();
  // The unit of `wait` and `service`; longer ones than 429 s are told as that.
  static constexpr Duration kTick = std::chrono::nanoseconds(100);

  std::int64_t arrival_ns = 0;       // since the recording began; negative: before
  std::uint64_t file = 0;            // a hash that names it; 0: not known
  std::uint64_t offset = kNoOffset;  // in the data server's part of the file
  std::uint64_t asked = 0;           // bytes
  std::uint64_t moved = 0;
  std::uint32_t wait = 0;         // from its arrival until it was sent, or refused
  std::uint32_t service = 0;      // from there to its end
  std::uint32_t virtual_pfs = 0;  // index of Recorder::names()
  std::uint32_t origin = 0;       // index of Recorder::origins()
  std::uint32_t uid = kNoUser;
  IoKind kind = IoKind::read;
  RecordedReason reason = RecordedReason::nothing;
  RecordedEnd end = RecordedEnd::done;
  bool unscheduled = false;  // nothing could hold it

  bool operator==(const Recorded&) const = default;

  using Words = std::array<std::uint64_t, 8>;
  [[nodiscard]] Words words() const { return std::bit_cast<Words>(*this); }
  // Nothing if no request has these words.
  [[nodiscard]] static std::optional<Recorded> from(const Words& words);

  [[nodiscard]] static std::uint32_t ticks(Duration time) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time / kTick, 0, kMost));
  }
};
static_assert(sizeof(Recorded) == sizeof(Recorded::Words));

}  // namespace vpfs::stage
