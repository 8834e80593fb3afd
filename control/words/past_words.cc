#include "control/words/past_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "base/wide.h"
#include "control/words/printable.h"

namespace vpfs::words {

std::string percent_text(double part) {
  return fmt::format("{:.0f}%", part * 100);
}

std::string size_text(std::uint64_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", count / kGiB);
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", count / kMiB);
  return fmt::format("{:.1f} KiB", count / kKiB);
}

std::string rate_text(std::uint64_t bytes, std::uint64_t microseconds) {
  if (microseconds == 0) return "-";
  return fmt::format("{:.1f} MiB/s",
                     static_cast<double>(bytes) / static_cast<double>(microseconds) * 1e6 / kMiB);
}

std::string mean_text(std::uint64_t sum_us, std::uint64_t count) {
  if (count == 0) return "-";
  const double milliseconds = static_cast<double>(sum_us) / static_cast<double>(count) / 1000;
  return fmt::format("{:.1f} ms", milliseconds);
}

std::string length_text(std::uint64_t microseconds) {
  const std::uint64_t seconds = (microseconds + 500'000) / 1'000'000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", (seconds + 30) / 60);
  return fmt::format("{} h", (seconds + 1800) / 3600);
}

std::string servers_text(const SitePast& past) {
  if (past.servers.size() == 1) return "at " + printable(past.servers.front().name);
  return fmt::format("at {} servers", past.servers.size());
}

std::uint64_t as_bytes(std::uint64_t cost, const control::PastOf& who) {
  if (who.cost() == 0) return 0;
  return static_cast<std::uint64_t>(Wide{cost} * bytes_of(who) / who.cost());
}

std::uint64_t whole_cost(double amount) {
  constexpr double kMost = 1e18;
  return amount > 0 ? static_cast<std::uint64_t>(std::min(amount, kMost)) : 0;
}

double delivered_part(const control::PastOf& who) {
  if (who.entitled_cost() == 0) return 1;
  return static_cast<double>(who.cost()) / static_cast<double>(who.entitled_cost());
}

}  // namespace vpfs::words
