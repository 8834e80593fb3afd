#pragma once

#include <string>

#include <spdlog/spdlog.h>

#include "base/result.h"

namespace vpfs {

// Sends spdlog's default logger to standard error, one line a message with time and level.
// `level` is one of trace, debug, info, warn, error, off. Call once, from main.
[[nodiscard]] Result<void> set_up_logging(const std::string& program, const std::string& level);

// Changes the level of that logger; ignores unknown levels.
void set_log_level(const std::string& level);

}  // namespace vpfs
