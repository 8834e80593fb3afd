#pragma once

#include <csignal>

namespace vpfs {

// Blocks all signals for this thread and for threads that it starts meanwhile. A thread that a
// library or a port starts must not take a signal that the main thread handles, or blocks.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace vpfs
