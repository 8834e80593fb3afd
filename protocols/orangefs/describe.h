#pragma once

#include <string>

#include "protocols/orangefs/message.h"

// Messages as text for people.
namespace vpfs::orangefs {

// What matters most in one line: of an IO its handle, range and the bytes that this server moves,
// of others what they name, and who asks.
[[nodiscard]] std::string summary(const Request& request);
[[nodiscard]] std::string summary(const Response& response);

// Every field, as "name=value".
[[nodiscard]] std::string details(const Request& request);
[[nodiscard]] std::string details(const Response& response);

}  // namespace vpfs::orangefs
