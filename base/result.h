#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"

namespace vpfs {

// An error for people: a sentence that names the place. `code` is set where an operating-system
// call failed and callers may distinguish cases.
struct Error {
  std::string message;
  std::error_code code = {};
};

template <typename T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(std::string message, std::error_code code = {}) {
  return std::unexpected(Error{.message = std::move(message), .code = code});
}

}  // namespace vpfs

// VPFS_TRY(result): returns the error of a Result or another std::expected, if it has one.
//
//   Result<HostPort> parts = split_address(text);
//   VPFS_TRY(parts);
//
// VPFS_CO_TRY does so in a coroutine.
#define VPFS_TRY_WITH(leave, ...)                      \
  if (auto&& vpfs_tried = (__VA_ARGS__); vpfs_tried) { \
  } else                                               \
    leave std::unexpected(std::forward<decltype(vpfs_tried)>(vpfs_tried).error())
#define VPFS_TRY(...) VPFS_TRY_WITH(return, __VA_ARGS__)
#define VPFS_CO_TRY(...) VPFS_TRY_WITH(co_return, __VA_ARGS__)
