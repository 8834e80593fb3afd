#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "fuse/process_file.h"

namespace vpfs::fuse {

// Environments are as long as their owners make them, and reading one takes time from other users.
// Linux lets one variable have 128 KiB.
inline constexpr std::size_t kMostEnvironment = 256 * 1024;

// The environment that a process was started with: "NAME=VALUE" texts, each ended by a NUL. If it
// is longer than kMostEnvironment, only the texts that end within that. "": the process is gone or
// must not be looked into.
[[nodiscard]] std::string environment_of(pid_t process, std::string_view processes = kProcesses);

// The value of a variable in it.
[[nodiscard]] std::optional<std::string_view> variable_in(std::string_view environment,
                                                          std::string_view name);

}  // namespace vpfs::fuse
