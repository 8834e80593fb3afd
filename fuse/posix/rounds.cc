#include "fuse/posix/rounds.h"

#include <chrono>
#include <string>
#include <system_error>

#include "base/signal_block.h"

namespace vpfs::fuse {
namespace {

constexpr auto kBetweenRounds = std::chrono::milliseconds(100);

}  // namespace

Result<void> Rounds::start() {
  const SignalBlock no_signals;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& problem) {
    return fail(std::string("cannot start a thread: ") + problem.what());
  }
  return {};
}

void Rounds::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Rounds::wake_thread() {
  // The thread looks at the flag with the lock, or waits.
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void Rounds::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || is_awake_; });
    if (changed_.wait_for(lock, kBetweenRounds, [this] { return stops_; })) return;
    // What comes from now on may have another round.
    is_awake_ = false;
    lock.unlock();
    if (round_()) is_awake_ = true;
    lock.lock();
  }
}

}  // namespace vpfs::fuse
