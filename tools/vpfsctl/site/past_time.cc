#include "tools/vpfsctl/site/past_time.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tools/vpfsctl/site/words.h"

namespace vpfs::ctl {
namespace {

constexpr std::uint64_t kUsualSeconds = 600;
constexpr std::uint64_t kUsualLength = 300;

// The whole text by that format of strptime().
bool parse(const std::string& text, const char* format, std::tm& parts) {
  const char* const end = strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0';
}

std::optional<WallTime> time_of(std::tm parts) {
  parts.tm_isdst = -1;
  const std::time_t time = std::mktime(&parts);
  if (time == -1) return std::nullopt;
  return WallTime(std::chrono::seconds(time));
}

// A day that the calendar has, of a year with four digits.
bool is_day(const std::tm& parts) {
  return parts.tm_year >= 70 &&
         std::chrono::year_month_day(std::chrono::year(parts.tm_year + 1900),
                                     std::chrono::month(static_cast<unsigned>(parts.tm_mon) + 1),
                                     std::chrono::day(static_cast<unsigned>(parts.tm_mday)))
             .ok();
}

std::optional<WallTime> time_of_day(const std::string& text, WallTime now) {
  const std::time_t today = std::chrono::system_clock::to_time_t(now);
  std::tm parts = {};
  if (localtime_r(&today, &parts) == nullptr) return std::nullopt;
  parts.tm_sec = 0;
  if (!parse(text, "%H:%M", parts) && !parse(text, "%H:%M:%S", parts)) return std::nullopt;
  const std::optional<WallTime> time = time_of(parts);
  if (!time || *time <= now) return time;
  --parts.tm_mday;  // yesterday; mktime() knows the length of months
  return time_of(parts);
}

std::optional<WallTime> date_and_time(const std::string& text) {
  for (const char* format : {"%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts = {};
    if (parse(text, format, parts) && is_day(parts)) return time_of(parts);
  }
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_option_seconds(std::string_view option, const std::string& text) {
  const bool has_minutes = text.size() > 1 && text.ends_with('m') &&
                           (text[text.size() - 2] >= '0' && text[text.size() - 2] <= '9');
  const Result<std::uint64_t> seconds = parse_seconds(has_minutes ? text + "in" : text);
  if (!seconds) return fail(fmt::format("{}: {}", option, seconds.error().message));
  if (*seconds == 0) return fail(fmt::format("{}: expected a time, such as 10m", option));
  return *seconds;
}

Result<PastTime> read_past_time(const std::string& since, const std::string& at,
                                const std::string& duration, WallTime now) {
  if (at.empty()) {
    if (!duration.empty()) return fail("--for needs --at");
    if (since.empty()) return PastTime{.back_seconds = kUsualSeconds};
    const Result<std::uint64_t> seconds = parse_option_seconds("--since", since);
    VPFS_TRY(seconds);
    return PastTime{.back_seconds = *seconds};
  }
  if (!since.empty()) return fail("--since and --at: give one of them");
  std::optional<WallTime> from = time_of_day(at, now);
  if (!from) from = date_and_time(at);
  if (!from) {
    return fail(fmt::format(
        "--at: \"{}\": expected a time of day here, such as 14:05 or \"2026-11-22 14:05\"", at));
  }
  if (*from > now) return fail(fmt::format("--at: {} is yet to come", at));
  std::uint64_t length = kUsualLength;
  if (!duration.empty()) {
    const Result<std::uint64_t> seconds = parse_option_seconds("--for", duration);
    VPFS_TRY(seconds);
    length = *seconds;
  }
  const std::int64_t begin = seconds_since_epoch(*from);
  return PastTime{.back_seconds = 0,
                  .from_at = begin,
                  .to_at = begin + static_cast<std::int64_t>(
                                       std::min<std::uint64_t>(length, std::uint64_t{1} << 32))};
}

}  // namespace vpfs::ctl
