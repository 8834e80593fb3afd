#pragma once

#include <string_view>
#include <system_error>

#include "base/result.h"
#include "protocols/orangefs/types.h"

namespace vpfs::client {

// The error for a response's status, and for a failure of the transport. After the latter it is
// unknown whether the server did the work.
[[nodiscard]] std::unexpected<Error> status_error(std::string_view what, orangefs::Status status);
[[nodiscard]] std::unexpected<Error> transport_error(std::string_view what,
                                                     std::error_code failure);
[[nodiscard]] bool is_transport_error(const Error& error);

// The errno that a user of the file system sees: that of a server's answer or of a check before it,
// EIO when the transport failed.
[[nodiscard]] int errno_of(const Error& error);

}  // namespace vpfs::client
