#pragma once

#include <string>

#include "base/result.h"
#include "control/host/config.h"
#include "net/inherited.h"

namespace vpfs::control {

// Keeps other programs off a status file by a lock on FILE.lock beside it. The kernel releases the
// lock when its holder ends in any way. The lock file stays.
class StatusLock {
 public:
  // The error names the holder. On a file system without locks nothing is locked.
  [[nodiscard]] static Result<StatusLock> take(const std::string& status_file,
                                               const ProgramName& name) {
    return take(status_file, name, nullptr);
  }
  // The same where the process before may have given its lock. Then name_holder() follows once this
  // process is in charge.
  [[nodiscard]] static Result<StatusLock> take(const std::string& status_file,
                                               const ProgramName& name, net::Inherited* inherited);
  StatusLock() = default;
  ~StatusLock();
  StatusLock(StatusLock&& other) noexcept;
  StatusLock& operator=(StatusLock&& other) noexcept;

  // Writes into the lock that this process has it, for the errors of others.
  void name_holder() const;

  // Whether this is the lock of `status_file`, whatever its name there is.
  [[nodiscard]] bool is_of(const std::string& status_file) const;
  // For the next process; -1: there is none.
  [[nodiscard]] int native_handle() const { return file_; }
  static constexpr const char* kName = "proxy.status_file.lock";

 private:
  int file_ = -1;
};

// Replaces the file atomically: a reader sees either the old text or the new one.
[[nodiscard]] Result<void> write_status_file(const std::string& path, const std::string& text);

}  // namespace vpfs::control
