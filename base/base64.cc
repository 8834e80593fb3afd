#include "base/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace vpfs {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kOther = 0xff;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kOther);
  for (std::size_t value = 0; value < kAlphabet.size(); ++value) {
    values[static_cast<unsigned char>(kAlphabet[value])] = static_cast<std::uint8_t>(value);
  }
  return values;
}();

std::uint32_t byte_at(std::string_view bytes, std::size_t index) {
  return index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t group =
        byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2);
    text += kAlphabet[group >> 18];
    text += kAlphabet[group >> 12 & 63];
    text += at + 1 < bytes.size() ? kAlphabet[group >> 6 & 63] : '=';
    text += at + 2 < bytes.size() ? kAlphabet[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t padded = at + 4 == text.size() ? padding : 0;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint8_t value =
          i < 4 - padded ? kValues[static_cast<unsigned char>(text[at + i])] : std::uint8_t{0};
      if (value == kOther) return std::nullopt;
      group = group << 6 | value;
    }
    const std::uint32_t left_over = padded == 0 ? 0 : group & (padded == 1 ? 0xffU : 0xffffU);
    if (left_over != 0) return std::nullopt;
    bytes += static_cast<char>(group >> 16 & 0xff);
    if (padded < 2) bytes += static_cast<char>(group >> 8 & 0xff);
    if (padded < 1) bytes += static_cast<char>(group & 0xff);
  }
  return bytes;
}

}  // namespace vpfs
