#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vpfs {

// The word of `known` that a user who typed `word` most likely meant: the one with the fewest
// letters to insert, remove or replace. Nothing if none is near. Ties go to the first.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      std::span<const std::string> known);

}  // namespace vpfs
