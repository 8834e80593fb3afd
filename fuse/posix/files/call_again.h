#pragma once

#include <utility>

namespace vpfs::fuse {

// How an operation tells the thread that has called libfuse that the call could not begin: it would
// wait for another user's process, or for room while another process takes the mount over. The
// kernel gets no answer then. The thread calls again later, or the other process does.
class CallAgain {
 public:
  // For the calling thread.
  static void ask() { asked_ = true; }
  // Whether an operation has asked since the last time.
  [[nodiscard]] static bool take() { return std::exchange(asked_, false); }

 private:
  inline static thread_local bool asked_ = false;
};

}  // namespace vpfs::fuse
