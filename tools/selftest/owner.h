#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/load/owner.h"

namespace vpfs::selftest {

using load::LoadProcess;

// The process that a self-test runs in, as a value of its rules' conditions, which no request has.
// So another self-test sees whose they are.
[[nodiscard]] std::string to_value(const LoadProcess& owner);
// The owner that a condition names.
[[nodiscard]] std::optional<LoadProcess> owner_of(std::string_view condition);

}  // namespace vpfs::selftest
