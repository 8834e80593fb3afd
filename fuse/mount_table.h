#pragma once

#include <string>
#include <string_view>

namespace vpfs::fuse {

// The type of the file system that is mounted at a directory, "fuse.vpfs" for one of vpfs-mount; of
// several mounts there the last. "": nothing is mounted there. `table` is /proc/self/mountinfo.
[[nodiscard]] std::string type_mounted_at(std::string_view directory, std::string_view table);

// The same, of this machine now. The path is absolute and has no symbolic links.
[[nodiscard]] std::string type_mounted_at(std::string_view directory);

}  // namespace vpfs::fuse
