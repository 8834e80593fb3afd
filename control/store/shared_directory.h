#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

// Which directories can hold the state of several coordinators.
namespace vpfs::control {

// Whether vpfs may control the I/O of file systems of this type ("beegfs", "fuse.vpfs"). If one
// stops, the coordinators must not stop with it.
[[nodiscard]] bool may_be_controlled(std::string_view type);

// The type of the file system that a path is on. The path is absolute and has no symbolic links;
// `table` is /proc/self/mountinfo. "": the table does not say.
[[nodiscard]] std::string file_system_of(std::string_view path, std::string_view table);

// The directory is there, this process may write to it and others may not, and vpfs does not
// control its file system.
[[nodiscard]] Result<void> check_shared_directory(const std::string& path);

}  // namespace vpfs::control
