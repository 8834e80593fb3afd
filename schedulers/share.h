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

// What a flow is entitled to. Each policy looks at the part that it knows (docs/schedulers.md).
struct Share {
  static constexpr std::uint32_t kMaxWeight = 1'000'000;
  static constexpr std::uint8_t kMaxRank = 63;
  static constexpr std::uint64_t kMaxRate = std::uint64_t{1} << 50;  // of both rates

  // Relative to the other flows' weights; 1 ... kMaxWeight.
  std::uint32_t weight = 1;

  // Never above these; zero: no limit. For `edf`, rate and burst are the arrival curve's.
  BytesPerSecond rate = {};
  std::uint64_t operations = 0;  // each second
  // How much may go at once after a pause. A larger request passes when the bucket is full.
  Bytes burst = {3 * kMiB};
  std::uint64_t burst_operations = 3;
  // Tokens that the data server was too slow for are kept beyond the burst.
  bool realtime = false;
  // Of flows whose tokens are there, those of a lower rank go first; 0 ... kMaxRank. Nothing: 0,
  // and under AdapTBF also a place that follows from `nodes`.
  std::optional<std::uint8_t> rank = std::nullopt;

  // Served first up to this; zero: none.
  BytesPerSecond min = {};

  // The longest time to an answer; zero: no target. With `rate` it is a promise.
  Duration latency = Duration::zero();
  // "These bytes by this time"; zero bytes: nothing of the kind.
  Bytes finish_bytes = {};
  TimePoint finish_by = {};

  // What only one policy knows: its ShareWords, as far as the share has them.
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
