#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::check_policy {

// Runs `work` in a process of its own and returns its text. An error says how the process ended
// before: by which signal, with which code, or that it took longer than `limit` and was killed.
[[nodiscard]] Result<std::string> in_child(const std::function<std::string()>& work,
                                           std::chrono::seconds limit);

}  // namespace vpfs::check_policy
