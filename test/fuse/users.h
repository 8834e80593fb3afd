#pragma once

#include <sys/types.h>

namespace vpfs::test {

// Users of a mount; Mallory means harm.
inline constexpr uid_t kAlice = 1001;
inline constexpr uid_t kMallory = 1002;

}  // namespace vpfs::test
