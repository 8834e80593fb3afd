#pragma once

#include <string>

#include "base/result.h"

namespace vpfs::proxy {

// Keeps other proxies off a status file by a lock on FILE.lock beside it. The kernel releases the
// lock when its holder ends in any way. The lock file stays.
class StatusLock {
 public:
  // The error names the holder. On a file system without locks nothing is locked.
  [[nodiscard]] static Result<StatusLock> take(const std::string& status_file);
  StatusLock() = default;
  ~StatusLock();
  StatusLock(StatusLock&& other) noexcept;
  StatusLock& operator=(StatusLock&& other) noexcept;

  // Whether this is the lock of `status_file`, whatever its name there is.
  [[nodiscard]] bool is_of(const std::string& status_file) const;

 private:
  int file_ = -1;
};

}  // namespace vpfs::proxy
