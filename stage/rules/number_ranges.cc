#include "stage/rules/number_ranges.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace vpfs::stage {
namespace {

std::optional<std::uint64_t> number(std::string_view text, std::uint64_t most) {
  constexpr std::size_t kMostDigits = 20;
  if (text.size() > kMostDigits) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_good = error == std::errc{} && end == text.data() + text.size() && value <= most;
  return is_good ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<std::vector<NumberRange>> number_ranges(std::string_view text, std::uint64_t most) {
  std::vector<NumberRange> ranges;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::string_view from = part.substr(0, dash);
    const std::string_view to = dash == std::string_view::npos ? from : part.substr(dash + 1);
    const auto first = number(from, most);
    const auto last = number(to, most);
    if (!first || !last) {
      return fail(fmt::format(
          "\"{}\" is not a range of numbers from 0 to {}: expected one such as 1-128", part, most));
    }
    if (*last < *first) return fail(fmt::format("the range {} ends before it begins", part));
    ranges.push_back({.first = *first,
                      .last = *last,
                      .digits = from.size() > 1 && from.front() == '0' ? from.size() : 1});
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace vpfs::stage
