#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <ranges>
#include <span>

#include <fmt/format.h>

#include "base/joined.h"
#include "base/result.h"

namespace vpfs {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// The binary ones first, ascending: to_string() prints in these.
constexpr std::array<Unit, 11> kSizes = {{{"B", 1},
                                          {"KiB", kKiB},
                                          {"MiB", kMiB},
                                          {"GiB", kGiB},
                                          {"TiB", 1024 * kGiB},
                                          {"PiB", kGiB << 20},
                                          {"kB", 1'000},
                                          {"KB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000}}};
constexpr std::span<const Unit> kBinary = std::span(kSizes).first<6>();
constexpr std::array<Unit, 6> kTimes = {{{"ns", 1},
                                         {"us", 1'000},
                                         {"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"min", 60'000'000'000},
                                         {"h", 3'600'000'000'000}}};

constexpr std::uint64_t kPowersOfTen[] = {1,
                                          10,
                                          100,
                                          1'000,
                                          10'000,
                                          100'000,
                                          1'000'000,
                                          10'000'000,
                                          100'000'000,
                                          1'000'000'000,
                                          10'000'000'000,
                                          100'000'000'000,
                                          1'000'000'000'000};
constexpr std::size_t kMostDecimals = std::size(kPowersOfTen) - 1;

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Removes the digits at the front of `text` and returns them.
std::string_view take_digits(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && text[size] >= '0' && text[size] <= '9') ++size;
  const std::string_view digits = text.substr(0, size);
  text.remove_prefix(size);
  return digits;
}

bool to_integer(std::string_view digits, std::uint64_t* value) {
  return std::from_chars(digits.data(), digits.data() + digits.size(), *value).ec == std::errc{};
}

std::string names_of(std::span<const Unit> units) {
  return joined(std::views::transform(units, &Unit::name));
}

// fraction / 10^decimals x factor, if that is a whole number.
bool scaled_fraction(std::uint64_t fraction, std::size_t decimals, std::uint64_t factor,
                     std::uint64_t* value) {
  const std::uint64_t common = std::gcd(fraction, kPowersOfTen[decimals]);
  const std::uint64_t denominator = kPowersOfTen[decimals] / common;
  *value = fraction / common * (factor / denominator);
  return factor % denominator == 0;
}

bool same_letter(char a, char b) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return small(a) == small(b);
}

bool begins_like(std::string_view text, std::string_view begin) {
  return text.size() >= begin.size() &&
         std::ranges::equal(text.substr(0, begin.size()), begin, same_letter);
}

// "M" means MiB, "mib" too, and "mins" means min.
const Unit* meant_unit(std::string_view word, std::span<const Unit> units) {
  const Unit* meant = nullptr;
  for (const Unit& each : units) {
    // "m" alone means minutes.
    const bool is_short = begins_like(each.name, word) && each.name != "ms";
    if (is_short && each.factor > 1 && meant == nullptr) meant = &each;
  }
  for (const Unit& each : units) {
    if (each.name.size() > 1 && begins_like(word, each.name)) meant = &each;
  }
  return meant;
}

struct Quantity {
  std::uint64_t value;
  bool has_unit;
};

// Parses a decimal number that one of `units` may follow.
Result<Quantity> parse_quantity(std::string_view text, std::span<const Unit> units,
                                std::string_view whole_of) {
  std::string_view rest = trimmed(text);
  const std::string_view digits = take_digits(rest);
  std::string_view decimals;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    decimals = take_digits(rest);
    if (decimals.empty()) return fail(fmt::format("\"{}\" is not a number with a unit", text));
    while (decimals.ends_with('0')) decimals.remove_suffix(1);
  }
  if (digits.empty()) return fail(fmt::format("\"{}\" is not a number with a unit", text));
  rest = trimmed(rest);

  const Unit* unit = units.data();
  if (!rest.empty()) {
    unit = nullptr;
    for (const Unit& known : units) {
      if (known.name == rest) unit = &known;
    }
    if (unit == nullptr) {
      const Unit* const meant = meant_unit(rest, units);
      return fail(fmt::format(
          "\"{}\" has an unknown unit \"{}\" (known: {}){}", text, rest, names_of(units),
          meant == nullptr ? "" : fmt::format("; did you mean {}?", meant->name)));
    }
  }

  std::uint64_t value = 0;
  std::uint64_t fraction = 0;
  if (!to_integer(digits, &value) || __builtin_mul_overflow(value, unit->factor, &value)) {
    return fail(fmt::format("\"{}\" is too large", text));
  }
  if (!decimals.empty()) {
    if (decimals.size() > kMostDecimals || !to_integer(decimals, &fraction) ||
        !scaled_fraction(fraction, decimals.size(), unit->factor, &fraction)) {
      return fail(fmt::format("\"{}\" is not a whole number of {}", text, whole_of));
    }
  }
  if (__builtin_add_overflow(value, fraction, &value)) {
    return fail(fmt::format("\"{}\" is too large", text));
  }
  return Quantity{.value = value, .has_unit = !rest.empty()};
}

// Uses the largest unit in which `value` is exact with at most one decimal and four digits before
// it. If there is none, rounds to one decimal in the largest unit not above `value`.
std::string print(std::uint64_t value, std::span<const Unit> units) {
  const Unit* largest = units.data();
  for (const Unit& unit : units) {
    if (unit.factor <= value) largest = &unit;
  }
  for (const Unit* unit = largest; unit >= units.data(); --unit) {
    if (value / unit->factor >= 10'000) break;
    if (value % unit->factor == 0) return fmt::format("{} {}", value / unit->factor, unit->name);
    std::uint64_t tenth = 0;
    const std::uint64_t rest = value % unit->factor;
    if (!__builtin_mul_overflow(rest, 10U, &tenth) && tenth % unit->factor == 0) {
      return fmt::format("{}.{} {}", value / unit->factor, tenth / unit->factor, unit->name);
    }
  }
  return fmt::format("{:.1f} {}", static_cast<double>(value) / static_cast<double>(largest->factor),
                     largest->name);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const Result<Quantity> quantity = parse_quantity(text, kSizes, "bytes");
  VPFS_TRY(quantity);
  return Bytes{quantity->value};
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
  const std::string_view all = trimmed(text);
  if (!all.ends_with("/s")) {
    // The text is a valid size; only "/s" is missing.
    const Result<Quantity> amount = parse_quantity(all, kSizes, "bytes");
    if (amount && amount->has_unit) {
      return fail(fmt::format("\"{}\" is not a rate; did you mean \"{}/s\"?", text, all));
    }
    if (amount) {
      return fail(fmt::format("\"{}\" needs a unit, such as \"{} MiB/s\"", text, all));
    }
    return fail(fmt::format("\"{}\" is not a rate: expected one such as \"400 MiB/s\"", text));
  }
  const Result<Bytes> bytes = parse_bytes(all.substr(0, all.size() - 2));
  VPFS_TRY(bytes);
  return BytesPerSecond{bytes->count};
}

Result<Duration> parse_duration(std::string_view text) {
  const Result<Quantity> quantity = parse_quantity(text, kTimes, "nanoseconds");
  VPFS_TRY(quantity);
  if (!quantity->has_unit && quantity->value != 0) {
    return fail(fmt::format("\"{}\" needs a unit, such as \"{} s\" (known: {})", text,
                            trimmed(text), names_of(kTimes)));
  }
  if (quantity->value > static_cast<std::uint64_t>(Duration::max().count())) {
    return fail(fmt::format("\"{}\" is too large", text));
  }
  return Duration(static_cast<std::int64_t>(quantity->value));
}

std::string to_string(Bytes bytes) {
  return print(bytes.count, kBinary);
}

std::string to_string(BytesPerSecond rate) {
  return print(rate.count, kBinary) + "/s";
}

std::string to_string(Duration duration) {
  if (duration == Duration::zero()) return "0 s";
  const std::int64_t count = duration.count();
  if (count < 0) return "-" + print(0 - static_cast<std::uint64_t>(count), kTimes);
  return print(static_cast<std::uint64_t>(count), kTimes);
}

}  // namespace vpfs
