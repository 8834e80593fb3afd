#include "control/wire/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace vpfs::control {
namespace {

// Bytes of the character at the beginning; 0 if there is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    if (!follows(1) || !follows(2)) return 0;
    const std::uint32_t code = (first & 0xfU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
    return code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    const std::uint32_t begin = (first & 0x7U) << 6 | (byte(1) & 0x3fU);
    return begin >= 0x10 && begin <= 0x10f ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string to_utf8(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_size(std::string_view(text).substr(i));
    if (size == 0) text[i] = '?';
    i += size == 0 ? 1 : size;
  }
  return text;
}

void make_utf8(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(message, &fields);
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
        std::string text = reflection->GetRepeatedString(message, field, i);
        reflection->SetRepeatedString(&message, field, i, to_utf8(std::move(text)));
      } else if (field->type() == Field::TYPE_STRING) {
        reflection->SetString(&message, field, to_utf8(reflection->GetString(message, field)));
      } else if (field->type() == Field::TYPE_MESSAGE && field->is_repeated()) {
        make_utf8(*reflection->MutableRepeatedMessage(&message, field, i));
      } else if (field->type() == Field::TYPE_MESSAGE) {
        make_utf8(*reflection->MutableMessage(&message, field));
      }
    }
  }
}

}  // namespace vpfs::control
