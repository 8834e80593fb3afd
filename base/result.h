#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <utility>

namespace vpfs {

// What went wrong, for a person: a whole sentence that names the place. `code` is set where an
// operating-system call failed and the caller may want to tell cases apart.
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
