#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Texts for a terminal.
namespace vpfs::words {

// The text with all that could steer a terminal, and all that is not UTF-8, as "\x1B".
[[nodiscard]] std::string printable(std::string_view text);

// The same of each line of a text.
[[nodiscard]] std::string printable_lines(std::string_view text);

// How many columns a printable text takes: one for each code point.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// The text in at most `columns`; "~" ends one that was longer.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

// The text followed or preceded by spaces up to `columns`.
[[nodiscard]] std::string padded(std::string_view text, std::size_t columns, bool to_the_right);

// A time of day here: "2026-11-22 14:00:05"; "-" for 0.
[[nodiscard]] std::string time_text(std::int64_t seconds);

}  // namespace vpfs::words
