#pragma once

#include <string>

#include <sys/types.h>

#include "test/support/process.h"

namespace vpfs::test {

// A /dev/fuse of another mode, for this process and what it starts: in a mount namespace of its
// own, so the machine's device stays as it is. The process stays in that namespace.
class PrivateDevice {
 public:
  explicit PrivateDevice(mode_t mode);
  ~PrivateDevice();
  PrivateDevice(const PrivateDevice&) = delete;
  PrivateDevice& operator=(const PrivateDevice&) = delete;

  // Why there is none; "": there is.
  [[nodiscard]] const std::string& why_none() const { return why_none_; }

 private:
  TemporaryDirectory scratch_;
  std::string why_none_;
};

}  // namespace vpfs::test
