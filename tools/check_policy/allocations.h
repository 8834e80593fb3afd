#pragma once

#include <cstdint>

namespace vpfs::check_policy {

// The number of allocations of this program and its plugins so far: allocations.cc replaces the
// global operator new.
[[nodiscard]] std::uint64_t allocations();

}  // namespace vpfs::check_policy
