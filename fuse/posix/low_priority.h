#pragma once

namespace vpfs::fuse {

// While it lives, the calling thread leaves the processor to others if it is to.
class LowPriority {
 public:
  // Whether a thread of this process can come back from a low priority, which takes CAP_SYS_NICE.
  // Tries it in a thread of its own. REQUIRES: the calling thread has never acted for a user.
  [[nodiscard]] static bool is_possible();

  // REQUIRES: is_possible(), if it is to.
  explicit LowPriority(bool is_to) : is_low_(is_to) {
    if (is_low_) set_low();
  }
  ~LowPriority() {
    if (is_low_) set_normal();
  }
  LowPriority(const LowPriority&) = delete;
  LowPriority& operator=(const LowPriority&) = delete;

 private:
  static void set_low();
  static void set_normal();

  const bool is_low_;
};

}  // namespace vpfs::fuse
