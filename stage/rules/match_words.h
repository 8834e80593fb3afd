#pragma once

#include <optional>
#include <string_view>

#include "base/config_reader.h"

namespace vpfs::stage {

// Suggests conditions for words of other systems, in the mapping of a rule's conditions.
void suggest_match_words(ConfigReader& match);
// The word of a condition that a user probably means.
[[nodiscard]] std::optional<std::string_view> suggested_match_word(std::string_view word);

}  // namespace vpfs::stage
