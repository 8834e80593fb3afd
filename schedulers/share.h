#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "schedulers/request.h"

namespace vpfs {

// A flow's entitlement. Each policy uses the part that it knows (docs/schedulers.md).
struct Share {
  static constexpr std::uint32_t kMaxWeight = 1'000'000;
  static constexpr std::uint8_t kMaxRank = 63;
  static constexpr std::uint64_t kMaxRate = std::uint64_t{1} << 50;  // of both rates

  // Relative to the other flows' weights; 1 ... kMaxWeight.
  std::uint32_t weight = 1;

  // The flow never exceeds these rates; zero: no limit. For `edf`, rate and burst are the arrival
  // curve's.
  BytesPerSecond rate = {};
  std::uint64_t operations = 0;  // each second
  // The most that may go at once after a pause. A larger request passes when the bucket is full.
  Bytes burst = {3 * kMiB};
  std::uint64_t burst_operations = 3;
  // The flow keeps tokens beyond the burst if the data server was too slow for them.
  bool realtime = false;
  // Flows of a lower rank go first if they have their tokens; 0 ... kMaxRank. Nothing stands for 0;
  // AdapTBF then orders jobs by `nodes`.
  std::optional<std::uint8_t> rank = std::nullopt;

  // The flow is served first up to this rate; zero: no minimum.
  BytesPerSecond min = {};

  // The longest time to an answer; zero: no target. A rate makes it a promise.
  Duration latency = Duration::zero();
  // "These bytes by this time"; zero bytes: no such wish.
  Bytes finish_bytes = {};
  TimePoint finish_by = {};

  // Words that only one policy knows (ShareWord), with their values.
  struct Own {
    std::string_view word;  // a static text
    std::uint64_t value = 0;

    bool operator==(const Own&) const = default;
  };
  std::vector<Own> own = {};
  [[nodiscard]] std::optional<std::uint64_t> own_value(std::string_view word) const {
    const auto found = std::ranges::find(own, word, &Own::word);
    return found == own.end() ? std::nullopt : std::optional(found->value);
  }

  bool operator==(const Share&) const = default;
};

}  // namespace vpfs
