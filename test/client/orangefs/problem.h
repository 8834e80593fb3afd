#pragma once

#include "base/result.h"
#include "client/orangefs/calls/error.h"

namespace vpfs::client {

// The errno of a failure, 0 for a success.
template <typename T>
int problem(const Result<T>& result) {
  return result ? 0 : errno_of(result.error());
}

}  // namespace vpfs::client
