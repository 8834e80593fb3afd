#include "control/etcd/etcd_keys.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace vpfs::control {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::size_t kPartDigits = 4;

template <typename Number>
std::optional<Number> digits(std::string_view text, std::size_t count) {
  if (text.size() != count) return std::nullopt;
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  Number number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace

std::string EtcdKeys::records_of(std::uint64_t generation) const {
  return fmt::format("{}{:020}/", records(), generation);
}

std::string EtcdKeys::record(const Place& place) const {
  return fmt::format("{}{:020}", records_of(place.generation), place.number);
}

std::string EtcdKeys::part(const Place& place, std::size_t index) const {
  return fmt::format("{}{:04}", parts(place), index);
}

std::optional<EtcdKeys::RecordKey> EtcdKeys::parse(const std::string& key,
                                                   std::uint64_t generation) const {
  const std::string begin = records_of(generation);
  if (!key.starts_with(begin)) return std::nullopt;
  const std::string_view rest = std::string_view(key).substr(begin.size());
  const auto number = digits<std::uint64_t>(rest.substr(0, kDigits), kDigits);
  if (!number) return std::nullopt;
  if (rest.size() == kDigits) return RecordKey{.number = *number, .part = std::nullopt};
  if (rest[kDigits] != '/') return std::nullopt;
  const auto part = digits<std::size_t>(rest.substr(kDigits + 1), kPartDigits);
  if (!part) return std::nullopt;
  return RecordKey{.number = *number, .part = part};
}

}  // namespace vpfs::control
