#pragma once

#include <expected>

#include "protocols/pvfs2/errors.h"

namespace vpfs::dataserver {

// What an operation of the server comes to: a value, or the status that the client gets.
template <typename T>
using Outcome = std::expected<T, pvfs2::Status>;

// `error` is an errno value.
[[nodiscard]] inline std::unexpected<pvfs2::Status> refuse(int error) {
  return std::unexpected(pvfs2::status_from_errno(error));
}

}  // namespace vpfs::dataserver
