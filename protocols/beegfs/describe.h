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

// The main fields in one line: target and user; for an I/O also range, handle, mount, owner and
// directory.
[[nodiscard]] std::string summary(const Message& message);
// Every field, as "name=value".
[[nodiscard]] std::string details(const Message& message);

}  // namespace vpfs::beegfs
