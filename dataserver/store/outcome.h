#pragma once

#include <expected>

#include "protocols/orangefs/errors.h"

namespace vpfs::dataserver {

// What an operation of the server comes to: a value, or the status that the client gets.
template <typename T>
using Outcome = std::expected<T, orangefs::Status>;

// `error` is an errno value.
[[nodiscard]] inline std::unexpected<orangefs::Status> refuse(int error) {
  return std::unexpected(orangefs::status_from_errno(error));
}

}  // namespace vpfs::dataserver
