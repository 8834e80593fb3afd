#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace vpfs {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Well-formed sequences by their first byte: table 3-7 of the Unicode standard. The second byte has
// bounds of its own, which keep out overlong forms, surrogates, and what is above U+10FFFF.
struct Form {
  std::uint8_t first;
  std::uint8_t last;
  std::size_t size;
  std::uint8_t second_from;
  std::uint8_t second_to;
};
constexpr std::array<Form, 9> kForms = {{{0x00, 0x7F, 1, 0, 0},
                                         {0xC2, 0xDF, 2, 0x80, 0xBF},
                                         {0xE0, 0xE0, 3, 0xA0, 0xBF},
                                         {0xE1, 0xEC, 3, 0x80, 0xBF},
                                         {0xED, 0xED, 3, 0x80, 0x9F},
                                         {0xEE, 0xEF, 3, 0x80, 0xBF},
                                         {0xF0, 0xF0, 4, 0x90, 0xBF},
                                         {0xF1, 0xF3, 4, 0x80, 0xBF},
                                         {0xF4, 0xF4, 4, 0x80, 0x8F}}};

bool within(char byte, std::uint8_t from, std::uint8_t to) {
  const auto value = static_cast<std::uint8_t>(byte);
  return value >= from && value <= to;
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  const auto* form = std::ranges::find_if(
      kForms, [&](const Form& each) { return within(text.front(), each.first, each.last); });
  if (form == kForms.end() || text.size() < form->size) return 0;
  if (form->size > 1 && !within(text[1], form->second_from, form->second_to)) return 0;
  for (std::size_t i = 2; i < form->size; ++i) {
    if (!within(text[i], 0x80, 0xBF)) return 0;
  }
  return form->size;
}

std::string_view utf8_prefix(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && !begins_utf8_character(text[most])) --most;
  return text.substr(0, most);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_character(text);
    valid += size > 0 ? text.substr(0, size) : kReplacement;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return valid;
}

}  // namespace vpfs
