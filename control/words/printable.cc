#include "control/words/printable.h"

#include <array>
#include <ctime>

#include <fmt/format.h>

#include "base/utf8.h"

namespace vpfs::words {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// How many bytes the code point at the front has; 0 if it is none or steers a terminal.
std::size_t code_point(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x20 || first == 0x7f) return 0;
  const std::size_t size = utf8_character(text);
  const bool is_control = size == 2 && first == 0xc2 && byte_at(text, 1) < 0xa0;
  return is_control ? 0 : size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = code_point(text);
    if (size == 0) {
      result += fmt::format("\\x{:02X}", byte_at(text, 0));
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

std::string printable_lines(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result += printable(text.substr(0, end)) + '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return result;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char letter : text) columns += begins_utf8_character(letter) ? 1 : 0;
  return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_utf8_character(text[end]) && seen++ == columns - 1) break;
  }
  return std::string(text.substr(0, end)) + "~";
}

std::string padded(std::string_view text, std::size_t columns, bool to_the_right) {
  const std::size_t taken = columns_of(text);
  const std::string spaces(taken < columns ? columns - taken : 0, ' ');
  return to_the_right ? spaces + std::string(text) : std::string(text) + spaces;
}

std::string time_text(std::int64_t seconds) {
  if (seconds == 0) return "-";
  const std::time_t time = seconds;
  std::tm parts = {};
  if (localtime_r(&time, &parts) == nullptr) return fmt::format("@{}", seconds);
  std::array<char, 64> text = {};
  const std::size_t size = std::strftime(text.data(), text.size(), "%F %T", &parts);
  return {text.data(), size};
}

}  // namespace vpfs::words
