#pragma once

#include "dataserver/store/outcome.h"
#include "protocols/orangefs/errors.h"

// What a client is told of an outcome.
namespace vpfs::dataserver {

[[nodiscard]] inline orangefs::Status status_of(int error) {
  return orangefs::status_from_errno(error);
}
[[nodiscard]] inline orangefs::Status status_of(std::errc error) {
  return status_of(static_cast<int>(error));
}
template <typename T>
[[nodiscard]] orangefs::Status status_of(const Outcome<T>& outcome) {
  return outcome ? 0 : status_of(outcome.error());
}

}  // namespace vpfs::dataserver
