#pragma once

#include <system_error>

#include "protocols/beegfs/types.h"

namespace vpfs::client {

// An error of a BeeGFS server as an error code: its value is the OpsError, and it compares equal to
// the std::errc that an application on a mounted file system would see.
[[nodiscard]] std::error_code error_code_of(beegfs::OpsError error);

}  // namespace vpfs::client
