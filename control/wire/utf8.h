#pragma once

#include <google/protobuf/message.h>

namespace vpfs::control {

// Makes every text of the message UTF-8, as valid_utf8() of base/utf8.h does. Receivers take no
// message with another one, and names from a wire or a file may have any bytes.
void make_utf8(google::protobuf::Message& message);

}  // namespace vpfs::control
