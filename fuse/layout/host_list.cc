#include "fuse/layout/host_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace vpfs::fuse {
namespace {

constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostDigits = 9;

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::size_t digits = 0;
};

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// "7" or "001-003".
std::optional<Range> range_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view begin = text.substr(0, dash);
  const auto first = number_in(begin);
  const auto last = dash == text.npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{.first = *first, .last = *last, .digits = begin.size()};
}

// The text up to the next comma that stands outside of brackets, which leaves `rest`.
std::string_view next_word(std::string_view& rest) {
  std::size_t end = 0;
  bool inside = false;
  while (end < rest.size() && (inside || rest[end] != ',')) {
    if (rest[end] == '[') inside = true;
    if (rest[end] == ']') inside = false;
    ++end;
  }
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

// Adds each host of a word, with the brackets that follow `begin` still to come. False: it is no
// word of a list, or there are too many.
bool add_hosts(const std::string& begin, std::string_view word, std::vector<std::string>& hosts) {
  const std::size_t open = word.find('[');
  if (open == word.npos) {
    const std::string host = begin + std::string(word);
    if (host.empty() || host.find(']') != host.npos || hosts.size() == kMostHosts) return false;
    hosts.push_back(host);
    return true;
  }
  const std::size_t close = word.find(']', open);
  if (close == word.npos) return false;
  std::string_view ranges = word.substr(open + 1, close - open - 1);
  const std::string_view end = word.substr(close + 1);
  do {
    const std::string_view text = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(text.size() + 1, ranges.size()));
    const auto range = range_in(text);
    if (!range) return false;
    for (std::uint32_t number = range->first; number <= range->last; ++number) {
      const std::string next =
          fmt::format("{}{}{:0{}}", begin, word.substr(0, open), number, range->digits);
      if (!add_hosts(next, end, hosts)) return false;
    }
  } while (!ranges.empty());
  return true;
}

bool is_equal(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

bool is_number(std::string_view name) {
  return name.find_first_not_of("0123456789.") == name.npos;
}

}  // namespace

std::vector<std::string> hosts_in(std::string_view list) {
  std::vector<std::string> hosts;
  while (!list.empty()) {
    if (!add_hosts("", next_word(list), hosts)) return {};
  }
  return hosts;
}

bool is_same_host(std::string_view one, std::string_view other) {
  if (one.empty() || other.empty()) return false;
  if (is_equal(one, other)) return true;
  // Labels of an address are no names.
  if (is_number(one) || is_number(other)) return false;
  const std::string_view short_one = one.substr(0, one.find('.'));
  const std::string_view short_other = other.substr(0, other.find('.'));
  const bool one_is_short = short_one.size() == one.size() || short_other.size() == other.size();
  return one_is_short && is_equal(short_one, short_other);
}

}  // namespace vpfs::fuse
