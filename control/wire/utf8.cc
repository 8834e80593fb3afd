#include "control/wire/utf8.h"

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "base/utf8.h"

namespace vpfs::control {

void make_utf8(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(message, &fields);
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
        const std::string text = reflection->GetRepeatedString(message, field, i);
        reflection->SetRepeatedString(&message, field, i, valid_utf8(text));
      } else if (field->type() == Field::TYPE_STRING) {
        reflection->SetString(&message, field, valid_utf8(reflection->GetString(message, field)));
      } else if (field->type() == Field::TYPE_MESSAGE && field->is_repeated()) {
        make_utf8(*reflection->MutableRepeatedMessage(&message, field, i));
      } else if (field->type() == Field::TYPE_MESSAGE) {
        make_utf8(*reflection->MutableMessage(&message, field));
      }
    }
  }
}

}  // namespace vpfs::control
