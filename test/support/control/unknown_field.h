#pragma once

#include <string>

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace vpfs::test {

inline constexpr int kUnknownField = 1000;

// A field that this version does not know, as a later one may have it.
inline void add_unknown(google::protobuf::Message& message, const std::string& value = "later") {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(kUnknownField, value);
}

// Its value; "": there is none.
inline std::string unknown_of(const google::protobuf::Message& message) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == kUnknownField) return fields.field(i).length_delimited();
  }
  return "";
}

}  // namespace vpfs::test
