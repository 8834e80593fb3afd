#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/types.h>

#include "base/result.h"

// Files that an administrator names. A name may lead to anything: to a FIFO, whose opening waits
// for its other end, or to a device without an end.
namespace vpfs {

// Opening with these flags never waits, whatever the name leads to. They change nothing about
// regular files.
inline constexpr int kNoWaiting = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

// What a file is, with its article: "a regular file", "a FIFO". `mode` is st_mode of stat().
[[nodiscard]] std::string_view kind_of_file(mode_t mode);

// Why `path` could not be opened, when open() with kNoWaiting set errno to `error`: the error's
// text, or what the file is where that says more ("is a socket, not a regular file").
[[nodiscard]] std::string why_not_opened(const std::string& path, int error);

// Opens a regular file, or makes one if `flags` have O_CREAT, without waiting. Returns the
// descriptor, which is the caller's. An error names the path and what it is; it has no code if
// that is not a regular file.
[[nodiscard]] Result<int> open_regular_file(const std::string& path, int flags, mode_t mode = 0);

// The same check by name, for libraries that open the file themselves: it is a regular file that
// this process may read.
[[nodiscard]] Result<void> check_readable_file(const std::string& path);

// Why no file can be made under this name, as far as its folder goes: it is missing, no folder, or
// the effective user may not write there. Nothing: it is good, or the file is there already.
[[nodiscard]] std::optional<std::string> problem_of_folder(const std::string& path);

}  // namespace vpfs
