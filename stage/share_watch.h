#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "schedulers/crowd_clock.h"
#include "stage/place.h"

namespace vpfs::stage {

// Finds out which virtual PFSes miss their shares because they keep no queue: they had requests in
// flight for most of a span, but too few to have one waiting whenever it was their turn. See
// docs/schedulers.md, "Shares that are missed".
//
//   in flight    crowded time with requests in flight >= half of the span
//   got less     G <= 9/10 E   with E = entitled time / crowded time x cost sent while crowded
//   no queue     E x (time without a queue / time in flight) >= (E - G) / 2
//
// G is the cost sent for it in the span.
class ShareWatch {
 public:
  static constexpr Duration kSpan = std::chrono::milliseconds(900);

  struct Reading {
    VirtualPfsId id;
    std::uint32_t schedulers = 0;  // generation of the schedulers
    std::uint8_t traffic_class = 0;
    Crowding crowding;  // of all lanes
    Cost sent = 0;      // of the virtual PFS
  };

  struct Verdict {
    bool keeps_no_queue = false;  // in the last span
    // Sums over all spans of the virtual PFS: Crowding has the same.
    Duration present = {};
    Duration in_flight = {};
    Duration without_queue = {};

    template <typename Archive>
    void archive(Archive& fields) {
      fields("present", present);
      fields("in_flight", in_flight);
      fields("without_queue", without_queue);
    }
  };

  // The verdict if the virtual PFS's span goes on; nullptr: look() may judge it. It spares readers
  // that come more often than a span the work for a reading.
  [[nodiscard]] const Verdict* unless_due(VirtualPfsId id, TimePoint now) const {
    const std::size_t index = std::to_underlying(id.app);
    if (index >= spans_.size()) return nullptr;
    const Span& span = spans_[index];
    const bool goes_on = span.has_begun && span.first.id == id && now - span.begin < kSpan;
    return goes_on ? &span.verdict : nullptr;
  }
  // Judges the time since the last judgement, if that is a span or longer. Readings that are not
  // comparable with the ones before begin a span.
  const Verdict& look(const Reading& reading, TimePoint now);
  // For a successor: the sums of a virtual PFS so far, and those that it goes on from.
  [[nodiscard]] Verdict verdict(VirtualPfsId id) const;
  void begin_with(VirtualPfsId id, const Verdict& sums);
  // There are no readings any more, since the policy has no weights. The sums stay.
  [[nodiscard]] Verdict stop(VirtualPfsId id);

 private:
  struct Span {
    TimePoint begin = {};
    Reading first;
    bool has_begun = false;
    Verdict verdict;
  };

  [[nodiscard]] static bool judge(const Reading& first, const Reading& last, Duration length);

  std::vector<Span> spans_;  // by number
};

}  // namespace vpfs::stage
