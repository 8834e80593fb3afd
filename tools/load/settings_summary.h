#pragma once

#include <string>

#include "tools/load/settings.h"

namespace vpfs::load {

// What a run of these settings will do, for people: a line for each thing, indented by two.
[[nodiscard]] std::string to_summary(const LoadSettings& settings);

}  // namespace vpfs::load
