#pragma once

#include <string>

#include "base/result.h"
#include "control/host/config.h"

namespace vpfs::control {

// Keeps other programs off a status file by a lock on FILE.lock beside it. The kernel releases the
// lock when its holder ends in any way. The lock file stays.
class StatusLock {
 public:
  // The error names the holder. On a file system without locks nothing is locked.
  [[nodiscard]] static Result<StatusLock> take(const std::string& status_file,
                                               const ProgramName& name);
  StatusLock() = default;
  ~StatusLock();
  StatusLock(StatusLock&& other) noexcept;
  StatusLock& operator=(StatusLock&& other) noexcept;

  // Whether this is the lock of `status_file`, whatever its name there is.
  [[nodiscard]] bool is_of(const std::string& status_file) const;

 private:
  int file_ = -1;
};

// Replaces the file atomically: a reader sees either the old text or the new one.
[[nodiscard]] Result<void> write_status_file(const std::string& path, const std::string& text);

}  // namespace vpfs::control
