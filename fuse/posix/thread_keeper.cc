#include "fuse/posix/thread_keeper.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

// After a failure, which takes a while to pass: descriptors or processes have run out.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr unsigned kPausesBetweenWarnings = 600;

// What the library throws is a failure like others.
Result<void> without_exceptions(const ThreadKeeper::Start& start) {
  try {
    return start();
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}

}  // namespace

ThreadKeeper::ThreadKeeper(Start start_one) : start_one_(std::move(start_one)) {}

ThreadKeeper::~ThreadKeeper() {
  stop();
}

Result<void> ThreadKeeper::start() {
  Result<std::thread> thread = net::start_thread([this] { keep(); });
  VPFS_TRY(thread);
  thread_ = std::move(*thread);
  return without_exceptions(start_one_);
}

void ThreadKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ThreadKeeper::want(std::size_t count) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ += count;
  }
  changed_.notify_all();
}

void ThreadKeeper::keep() {
  unsigned pauses_until_warning = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || wanted_ > 0; });
    if (stops_) return;
    lock.unlock();
    const Result<void> started = without_exceptions(start_one_);
    lock.lock();
    if (started) {
      --wanted_;
      continue;
    }
    if (pauses_until_warning == 0) {
      spdlog::warn("the mount goes on with the threads that it has: {}", started.error().message);
      pauses_until_warning = kPausesBetweenWarnings;
    }
    --pauses_until_warning;
    changed_.wait_for(lock, kPause, [this] { return stops_; });
  }
}

}  // namespace vpfs::fuse
