#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace vpfs::recording {

// The words of an enumeration, by its values.
inline constexpr std::array<std::string_view, 3> kKinds = {"read", "write", "metadata"};
inline constexpr std::array<std::string_view, 6> kReasons = {"",      "limit", "share",
                                                             "depth", "class", "kept"};
inline constexpr std::array<std::string_view, 4> kEnds = {"done", "failed", "refused", "abandoned"};

template <typename Value, std::size_t count>
[[nodiscard]] std::optional<Value> value_of(const std::array<std::string_view, count>& words,
                                            std::string_view word) {
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] == word) return static_cast<Value>(i);
  }
  return std::nullopt;
}

}  // namespace vpfs::recording
