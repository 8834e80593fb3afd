#pragma once

#include <string>

#include "base/result.h"

namespace vpfs::proxy {

// Keeps other proxies off a status file: a lock on FILE.lock beside it, which the kernel takes back
// when its holder ends, however that happens. The lock file itself stays.
class StatusLock {
 public:
  // The error names who has it. Where the file system knows no locks nothing is locked.
  [[nodiscard]] static Result<StatusLock> take(const std::string& status_file);
  StatusLock() = default;
  ~StatusLock();
  StatusLock(StatusLock&& other) noexcept;
  StatusLock& operator=(StatusLock&& other) noexcept;

  // Whether it is the lock of that status file, by whatever name.
  [[nodiscard]] bool is_of(const std::string& status_file) const;

 private:
  int file_ = -1;
};

}  // namespace vpfs::proxy
