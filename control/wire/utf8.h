#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace vpfs::control {

// With a question mark for every byte that is not part of UTF-8.
[[nodiscard]] std::string to_utf8(std::string text);

// Makes every text of the message UTF-8. Receivers take no message with another one, and names from
// a wire or a file may have any bytes.
void make_utf8(google::protobuf::Message& message);

}  // namespace vpfs::control
