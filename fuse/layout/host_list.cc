#include "fuse/layout/host_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kMostDigits = 9;

// "7" or "001-003".
struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::size_t digits = 0;  // at least

  [[nodiscard]] std::size_t count() const { return std::size_t{last} - first + 1; }
};

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

std::optional<Range> range_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view begin = text.substr(0, dash);
  const auto first = number_in(begin);
  const auto last = dash == text.npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{.first = *first, .last = *last, .digits = begin.size()};
}

// The text up to the next comma, without it.
std::string_view part_of(std::string_view ranges) {
  return ranges.substr(0, ranges.find(','));
}

// The ranges between two brackets, and the number among them that a name has now. The text has been
// checked.
class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(std::string_view text) : text_(text) { rewind(); }

  void rewind() {
    rest_ = text_;
    take_range();
  }
  // Goes on to the next number; false: that was the last one.
  [[nodiscard]] bool advance() {
    if (number_ < range_.last) {
      ++number_;
      return true;
    }
    if (rest_.empty()) return false;
    take_range();
    return true;
  }
  // Writes the number; returns the place after it, or null without enough room.
  [[nodiscard]] char* write(char* at, char* end) const {
    std::array<char, kMostDigits + 1> text = {};
    const auto* const text_end = std::to_chars(text.data(), text.data() + text.size(), number_).ptr;
    const auto size = static_cast<std::size_t>(text_end - text.data());
    const std::size_t zeros = range_.digits > size ? range_.digits - size : 0;
    if (static_cast<std::size_t>(end - at) < zeros + size) return nullptr;
    at = std::fill_n(at, zeros, '0');
    return std::copy_n(text.data(), size, at);
  }

 private:
  void take_range() {
    const std::string_view part = part_of(rest_);
    rest_.remove_prefix(std::min(part.size() + 1, rest_.size()));
    range_ = *range_in(part);
    number_ = range_.first;
  }

  std::string_view text_;
  std::string_view rest_;  // after the range
  Range range_;
  std::uint32_t number_ = 0;
};

// Reads a list word by word. A word is a name with up to three brackets, whose numbers turn like
// those of an odometer.
class Reader {
 public:
  Reader(std::string_view list, const std::function<void(std::string_view)>& each)
      : list_(list), each_(each) {}

  [[nodiscard]] Result<void> read();

 private:
  [[nodiscard]] Result<void> read_word();
  // The brackets whose '[' is at at_. Multiplies the hosts of the word.
  [[nodiscard]] Result<void> read_brackets();
  [[nodiscard]] Result<void> name_hosts();
  // The host that the numbers spell now; empty: it is too long.
  [[nodiscard]] std::string_view spell();
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view what,
                                             std::string_view expected) const {
    return fail(fmt::format("byte {}: {}; expected {}", at_, what, expected));
  }
  [[nodiscard]] std::unexpected<Error> too_many() const {
    return wrong("too many hosts", fmt::format("at most {}", kMostHosts));
  }

  [[nodiscard]] std::unexpected<Error> too_long() const {
    return wrong("the name of a host is too long", fmt::format("at most {} bytes", kLongestHost));
  }

  const std::string_view list_;
  const std::function<void(std::string_view)>& each_;
  std::size_t at_ = 0;
  std::size_t hosts_ = 0;  // of words before
  std::size_t bytes_ = 0;  // of their names
  // The word: a text, and after each bracket another one.
  std::array<std::string_view, kMostBrackets + 1> texts_;
  std::array<Numbers, kMostBrackets> numbers_;
  std::size_t brackets_ = 0;
  std::size_t word_hosts_ = 0;
  std::array<char, kLongestHost> name_ = {};
};

Result<void> Reader::read() {
  if (list_.empty()) return {};
  for (;; ++at_) {
    if (Result<void> word = read_word(); !word) return word;
    if (Result<void> named = name_hosts(); !named) return named;
    if (at_ == list_.size()) return {};
  }
}

Result<void> Reader::read_word() {
  brackets_ = 0;
  word_hosts_ = 1;
  for (;;) {
    const std::string_view rest = list_.substr(at_, kLongestHost + 1);
    const std::string_view text = rest.substr(0, rest.find_first_of("[],"));
    if (text.size() > kLongestHost) return too_long();
    texts_[brackets_] = text;
    at_ += text.size();
    if (at_ == list_.size() || list_[at_] == ',') break;
    if (list_[at_] == ']') return wrong("']' without a '['", "NAME or NAME[1-3,7]");
    if (brackets_ == kMostBrackets) {
      return wrong("too many brackets in a word", fmt::format("at most {}", kMostBrackets));
    }
    if (Result<void> read = read_brackets(); !read) return read;
  }
  const bool is_empty = brackets_ == 0 && texts_[0].empty();
  if (is_empty) return wrong("the name of a host is empty", "NAME or NAME[1-3,7]");
  return {};
}

Result<void> Reader::read_brackets() {
  const std::size_t begin = ++at_;
  std::size_t count = 0;
  for (;; ++at_) {
    // A number is short, so the end of one that is not is not searched for.
    const std::string_view rest = list_.substr(at_, 2 * kMostDigits + 2);
    const std::size_t end = rest.find_first_of(",]");
    const auto range = range_in(rest.substr(0, end));
    if (end == rest.npos || !range) {
      return wrong("not a number or a range within brackets", "[1-3,7] with at most 9 digits");
    }
    count += range->count();
    if (count > kMostHosts) return too_many();
    at_ += end;
    if (list_[at_] == ']') break;
  }
  word_hosts_ *= count;
  if (word_hosts_ > kMostHosts) return too_many();
  numbers_[brackets_++] = Numbers(list_.substr(begin, at_ - begin));
  ++at_;
  return {};
}

std::string_view Reader::spell() {
  char* at = name_.data();
  char* const end = name_.data() + name_.size();
  for (std::size_t i = 0;; ++i) {
    if (static_cast<std::size_t>(end - at) < texts_[i].size()) return {};
    at = std::copy(texts_[i].begin(), texts_[i].end(), at);
    if (i == brackets_) break;
    at = numbers_[i].write(at, end);
    if (at == nullptr) return {};
  }
  return {name_.data(), static_cast<std::size_t>(at - name_.data())};
}

Result<void> Reader::name_hosts() {
  if (word_hosts_ > kMostHosts - hosts_) return too_many();
  hosts_ += word_hosts_;
  for (;;) {
    const std::string_view name = spell();
    if (name.empty()) return too_long();
    bytes_ += name.size();
    if (bytes_ > kMostHostBytes) {
      return wrong("the names of hosts are too long together",
                   fmt::format("at most {} bytes", kMostHostBytes));
    }
    each_(name);
    std::size_t turning = brackets_;
    for (; turning > 0 && !numbers_[turning - 1].advance(); --turning) {
      numbers_[turning - 1].rewind();
    }
    if (turning == 0) return {};
  }
}

bool is_equal(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

}  // namespace

Result<void> for_each_host(std::string_view list,
                           const std::function<void(std::string_view)>& each) {
  return Reader(list, each).read();
}

Result<std::vector<std::string>> hosts_in(std::string_view list) {
  std::vector<std::string> hosts;
  const Result<void> read =
      for_each_host(list, [&hosts](std::string_view name) { hosts.emplace_back(name); });
  VPFS_TRY(read);
  return hosts;
}

bool is_numeric_host(std::string_view name) {
  return name.find_first_not_of("0123456789.") == name.npos;
}

bool is_same_host(std::string_view one, std::string_view other) {
  if (one.empty() || other.empty()) return false;
  if (is_equal(one, other)) return true;
  // Labels of an address are not names.
  if (is_numeric_host(one) || is_numeric_host(other)) return false;
  const std::string_view short_one = one.substr(0, one.find('.'));
  const std::string_view short_other = other.substr(0, other.find('.'));
  const bool one_is_short = short_one.size() == one.size() || short_other.size() == other.size();
  return one_is_short && is_equal(short_one, short_other);
}

}  // namespace vpfs::fuse
