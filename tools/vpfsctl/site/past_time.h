#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::ctl {

// A time of the past as a request has it: the last seconds, or from one time to another.
struct PastTime {
  std::uint64_t back_seconds = 0;  // 0: the other two count
  std::int64_t from_at = 0;
  std::int64_t to_at = 0;
};

// Whole seconds as parse_seconds() reads them, and minutes may be "10m"; not zero. The error names
// the option.
[[nodiscard]] Result<std::uint64_t> parse_option_seconds(std::string_view option,
                                                         const std::string& text);

// Reads "--since 10m" or "--at 14:05 --for 5m"; without both it is the last ten minutes. A time of
// day is one of this host: "14:05", "14:05:30", "2026-11-22 14:05". One without a date is the last
// such time before `now`. The error names the option.
[[nodiscard]] Result<PastTime> read_past_time(const std::string& since, const std::string& at,
                                              const std::string& duration, WallTime now);

}  // namespace vpfs::ctl
