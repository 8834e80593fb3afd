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

// Signals that ask a program that runs for something: SIGHUP, SIGUSR1 and SIGUSR2. They end one
// that does not catch them yet, as when logs are rotated while it starts. So a program holds them
// back first of all, on its main thread, and lets them in once it has handlers.
inline void change_asking_signals(int how) {
  sigset_t asking;
  sigemptyset(&asking);
  for (const int each : {SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&asking, each);
  pthread_sigmask(how, &asking, nullptr);
}
inline void hold_back_asking_signals() {
  change_asking_signals(SIG_BLOCK);
}
inline void let_in_asking_signals() {
  change_asking_signals(SIG_UNBLOCK);
}

}  // namespace vpfs
