#include "fuse/posix/rounds.h"

#include <chrono>
#include <utility>

#include "base/result.h"
#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

constexpr auto kBetweenRounds = std::chrono::milliseconds(100);

}  // namespace

Result<void> Rounds::start() {
  Result<std::thread> thread = net::start_thread([this] { run(); });
  VPFS_TRY(thread);
  thread_ = std::move(*thread);
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
