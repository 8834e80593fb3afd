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

// Why the effective user cannot have a file or a socket of its own under this name: the folder is
// missing, is none, or may not be written, or the file or its `.lock` is there and may not be
// written, as after a start by another user. Nothing: it can, or the name is empty.
[[nodiscard]] std::optional<std::string> problem_of_place(const std::string& path);

}  // namespace vpfs
