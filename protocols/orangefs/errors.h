#pragma once

#include <string>

#include "protocols/orangefs/types.h"

// PVFS error codes: negative, -(1<<30 | class<<7 | n).
namespace vpfs::orangefs {

// The wire status for an errno value (positive), and back (0 for a class that has no errno).
// An errno that the protocol does not know becomes EIO.
[[nodiscard]] Status status_from_errno(int error);
[[nodiscard]] int errno_from_status(Status status);
// "No such file or directory (-1073741826)".
[[nodiscard]] std::string describe_status(Status status);

}  // namespace vpfs::orangefs
