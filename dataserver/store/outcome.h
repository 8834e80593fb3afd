#pragma once

#include <expected>
#include <system_error>

namespace vpfs::dataserver {

// What an operation on storage comes to: a value, or why there is none. The error is an errno
// value under a type of its own, so that no status of a protocol passes for it.
template <typename T>
using Outcome = std::expected<T, std::errc>;

// `error` is an errno value.
[[nodiscard]] inline std::unexpected<std::errc> refuse(int error) {
  return std::unexpected(static_cast<std::errc>(error));
}

}  // namespace vpfs::dataserver
