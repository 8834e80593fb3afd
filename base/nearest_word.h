#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vpfs {

// The word that `text` is probably a misspelling of; null: none is near. It points into `known`.
[[nodiscard]] const std::string* nearest_word(std::string_view text,
                                              std::span<const std::string> known);

}  // namespace vpfs
