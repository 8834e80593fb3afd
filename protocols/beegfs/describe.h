#pragma once

#include <cstdint>
#include <string>

#include "protocols/beegfs/message.h"

// Messages as text for people.
namespace vpfs::beegfs {

// "WriteLocalFile", "type 4711".
[[nodiscard]] std::string type_name(MessageType type);
// A byte count, or a negated OpsError with its text: "-15 (unknown target)".
[[nodiscard]] std::string describe_result(std::int64_t result);

// What matters most in one line: target and user, and of an I/O its range, its handle, the mount,
// and owner and directory that label it.
[[nodiscard]] std::string summary(const Message& message);
// Every field, as "name=value".
[[nodiscard]] std::string details(const Message& message);

}  // namespace vpfs::beegfs
