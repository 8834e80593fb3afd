#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace vpfs::fuse {

// Where the kernel shows processes. Tests have directories of their own.
inline constexpr std::string_view kProcesses = "/proc";

// The start of the file `name` of a process, as far as it fits into `buffer`, which it is in. "":
// it is empty, the process is gone, or must not be looked into.
[[nodiscard]] std::string_view read_process_file(std::string_view processes, pid_t process,
                                                 std::string_view name, std::span<char> buffer);

// The same, with at most `most` bytes. Allocates no more than twice what the file has.
[[nodiscard]] std::string read_process_file(std::string_view processes, pid_t process,
                                            std::string_view name, std::size_t most);

}  // namespace vpfs::fuse
