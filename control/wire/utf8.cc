#include "control/wire/utf8.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "base/utf8.h"

namespace vpfs::control {

std::string to_utf8(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = utf8_character(std::string_view(text).substr(i));
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
