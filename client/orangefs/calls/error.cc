#include "client/orangefs/calls/error.h"

#include <cerrno>

#include <fmt/format.h>

#include "protocols/orangefs/errors.h"

namespace vpfs::client {

std::unexpected<Error> status_error(std::string_view what, orangefs::Status status) {
  const int number = orangefs::errno_from_status(status);
  return fail(fmt::format("{}: {}", what, orangefs::describe_status(status)),
              {number == 0 ? EIO : number, std::generic_category()});
}

// Both compare equal to the same std::errc; the category tells them apart.
std::unexpected<Error> transport_error(std::string_view what, std::error_code failure) {
  return fail(fmt::format("{}: {}", what, failure.message()),
              {failure.value(), std::system_category()});
}

bool is_transport_error(const Error& error) {
  return error.code.category() == std::system_category();
}

int errno_of(const Error& error) {
  const bool known = error.code.category() == std::generic_category() && error.code.value() > 0;
  return known ? error.code.value() : EIO;
}

}  // namespace vpfs::client
