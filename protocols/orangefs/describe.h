#pragma once

#include <string>

#include "protocols/orangefs/message.h"

// Messages as text for people.
namespace vpfs::orangefs {

// The main fields in one line: handle, range and this server's bytes of an IO; of other messages
// the objects they name and the user.
[[nodiscard]] std::string summary(const Request& request);
[[nodiscard]] std::string summary(const Response& response);

// Every field, as "name=value".
[[nodiscard]] std::string details(const Request& request);
[[nodiscard]] std::string details(const Response& response);

}  // namespace vpfs::orangefs
