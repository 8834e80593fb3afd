#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <utility>

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
