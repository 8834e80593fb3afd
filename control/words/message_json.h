#pragma once

#include <google/protobuf/message.h>
#include <nlohmann/json.hpp>

namespace vpfs::words {

// A message with the names of its definition, in their order. All fields are there: numbers are
// numbers, also those of 64 bits; what is optional and absent is null; a choice is the name of its
// value in lower case.
[[nodiscard]] nlohmann::ordered_json to_json(const google::protobuf::Message& message);

}  // namespace vpfs::words
