#include "tools/wishes/wishes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/one_line.h"
#include "base/units.h"
#include "schedulers/share.h"

namespace vpfs::wishes {
namespace {

constexpr std::size_t kLongestQuote = 60;
constexpr std::string_view kBlanks = " \t\r\n";

struct Kind {
  Wish wish;
  std::string_view name;
  std::string_view word;
  std::string_view what;
  std::string_view example;
  std::uint64_t example_value;
  std::uint64_t least;
  std::uint64_t most;
};

// The ends are those of the words in a configuration.
constexpr std::array kKinds = {
    Kind{Wish::weight, "weight", "weight", "whole number", "4", 4, 1, Share::kMaxWeight},
    Kind{Wish::rate, "rate", "rate", "rate", "50MiB/s", 50 * kMiB, 1, Share::kMaxRate},
    Kind{Wish::deadline, "deadline", "latency", "time", "20ms", 20'000'000, 1'000,
         static_cast<std::uint64_t>(Duration(std::chrono::hours(24)).count())},
};

const Kind& kind_of(Wish wish) {
  return kKinds[static_cast<std::size_t>(wish)];
}

std::string quoted(std::string_view text) {
  return fmt::format("\"{}\"", one_short_line(text, kLongestQuote));
}

Result<std::uint64_t> parse_weight(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return fail(quoted(text) + " is too large");
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(quoted(text) + " is not a whole number");
  }
  return value;
}

Result<std::uint64_t> parse_rate_value(std::string_view text) {
  const Result<BytesPerSecond> rate = parse_rate(text);
  VPFS_TRY(rate);
  return rate->count;
}

Result<std::uint64_t> parse_time(std::string_view text) {
  const Result<Duration> time = parse_duration(text);
  VPFS_TRY(time);
  return static_cast<std::uint64_t>(time->count());
}

Result<std::uint64_t> parse_value(Wish wish, std::string_view text) {
  if (text.empty()) return fail("it is empty");
  if (text.size() > kLongestQuote) return fail(quoted(text) + " is too long");
  switch (wish) {
    case Wish::weight:
      return parse_weight(text);
    case Wish::rate:
      return parse_rate_value(text);
    case Wish::deadline:
      break;
  }
  return parse_time(text);
}

// One end of a bound; the end of vpfs where it is open.
Result<std::uint64_t> parse_end(const Kind& kind, std::string_view text, std::uint64_t open) {
  if (text.empty()) return open;
  Result<std::uint64_t> value = parse_value(kind.wish, text);
  VPFS_TRY(value);
  if (*value < kind.least || *value > kind.most) {
    return fail(fmt::format("{} is not possible", quoted(text)));
  }
  return value;
}

Result<Bound> parse_range(const Kind& kind, std::string_view range) {
  const std::size_t dots = range.find("..");
  if (dots == std::string_view::npos) {
    return fail(fmt::format("{} is not a range: expected LEAST..MOST, such as ..{}", quoted(range),
                            kind.example));
  }
  const std::string_view least_text = range.substr(0, dots);
  const std::string_view most_text = range.substr(dots + 2);
  const Result<std::uint64_t> least = parse_end(kind, least_text, kind.least);
  VPFS_TRY(least);
  const Result<std::uint64_t> most = parse_end(kind, most_text, kind.most);
  VPFS_TRY(most);
  if (*least > *most) return fail(fmt::format("{} is more than {}", least_text, most_text));
  return Bound{.word = std::string(kind.word),
               .least = *least,
               .most = *most,
               .least_text = std::string(least_text),
               .most_text = std::string(most_text)};
}

std::string range_text(const Bound& bound) {
  if (bound.least_text.empty() && bound.most_text.empty()) return "";
  if (bound.least_text.empty()) return fmt::format(" of at most {}", bound.most_text);
  if (bound.most_text.empty()) return fmt::format(" of at least {}", bound.least_text);
  return fmt::format(" from {} to {}", bound.least_text, bound.most_text);
}

std::string_view example_within(const Kind& kind, const Bound& bound) {
  if (kind.example_value > bound.most) return bound.most_text;
  return kind.example_value < bound.least ? bound.least_text : kind.example;
}

// Without blanks, as the words of rules are.
std::string compact(std::string_view text) {
  std::string made(text);
  std::erase_if(made, [](char byte) { return byte == ' ' || byte == '\t'; });
  return made;
}

}  // namespace

std::string_view name_of(Wish wish) {
  return kind_of(wish).name;
}

std::optional<Wish> find_wish(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == kKinds.end()) return std::nullopt;
  return found->wish;
}

Result<Bounds> Bounds::parse(const std::vector<std::string_view>& words) {
  Bounds made;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const bool is_total = key == "total_rate";
    const std::optional<Wish> wish = find_wish(is_total ? "rate" : key);
    if (!wish || equals == std::string_view::npos) {
      return fail(
          fmt::format("{}: expected weight=, rate=, total_rate= or deadline= with a range, "
                      "such as weight=1..8",
                      quoted(word)));
    }
    std::optional<Bound>& place = made.bounds_[static_cast<std::size_t>(*wish)];
    if (place)
      return fail(
          fmt::format("{}: there is a bound of the {} already", quoted(word), name_of(*wish)));
    Result<Bound> bound = parse_range(kind_of(*wish), word.substr(equals + 1));
    if (!bound) return fail(fmt::format("{}: {}", key, one_short_line(bound.error().message)));
    place = std::move(*bound);
    if (is_total) place->word = key;
  }
  return made;
}

Result<Bounds> Bounds::parse(std::string_view text) {
  return parse(split_words(text));
}

const Bound* Bounds::find(Wish wish) const {
  const std::optional<Bound>& bound = bounds_[static_cast<std::size_t>(wish)];
  return bound ? &*bound : nullptr;
}

Result<std::string> Bounds::grant(Wish wish, std::string_view value) const {
  const Bound* const bound = find(wish);
  if (bound == nullptr) {
    return fail(fmt::format("the administrator has set no bounds for a {}", name_of(wish)));
  }
  const Result<std::uint64_t> number = parse_value(wish, value);
  if (!number) {
    return fail(fmt::format("{}: expected {}", one_short_line(number.error().message),
                            expectation(wish, *bound)));
  }
  if (*number < bound->least || *number > bound->most) {
    return fail(
        fmt::format("{} is out of bounds: expected {}", quoted(value), expectation(wish, *bound)));
  }
  return fmt::format("{}={}", bound->word, compact(value));
}

std::string expectation(Wish wish, const Bound& bound) {
  const Kind& kind = kind_of(wish);
  const std::string range = fmt::format("a {}{}", kind.what, range_text(bound));
  const bool is_open = bound.least_text.empty() || bound.most_text.empty();
  return is_open ? fmt::format("{}, such as {}", range, example_within(kind, bound)) : range;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace vpfs::wishes
