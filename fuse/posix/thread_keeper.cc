#include "fuse/posix/thread_keeper.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/signal_block.h"

namespace vpfs::fuse {
namespace {

// After a failure, which takes a while to pass: descriptors or processes have run out.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr unsigned kPausesBetweenWarnings = 600;

// What the library throws is a failure like others.
Result<void> without_exceptions(const std::function<Result<void>()>& start) {
  try {
    return start();
  } catch (const std::exception& problem) {
    return fail(problem.what());
  }
}

}  // namespace

ThreadKeeper::ThreadKeeper(Starts starts) : starts_(std::move(starts)) {}

ThreadKeeper::~ThreadKeeper() {
  stop();
}

Result<void> ThreadKeeper::start() {
  const SignalBlock no_signals;
  const Result<void> kept = without_exceptions([this]() -> Result<void> {
    thread_ = std::thread([this] { keep(); });
    return {};
  });
  if (!kept) return fail("cannot start a thread: " + kept.error().message);
  return without_exceptions(starts_.reader);
}

void ThreadKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ThreadKeeper::want_reader() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(reader_wanted_, true)) return;
  }
  changed_.notify_all();
}

void ThreadKeeper::want_helpers(std::size_t count) {
  {
    const std::lock_guard lock(mutex_);
    helpers_wanted_ += count;
  }
  changed_.notify_all();
}

void ThreadKeeper::keep() {
  unsigned pauses_until_warning = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || reader_wanted_ || helpers_wanted_ > 0; });
    if (stops_) return;
    const bool is_reader = reader_wanted_;
    // Whoever asks from here on asks for another one.
    if (is_reader) {
      reader_wanted_ = false;
    } else {
      --helpers_wanted_;
    }
    lock.unlock();
    const Result<void> started = without_exceptions(is_reader ? starts_.reader : starts_.helper);
    lock.lock();
    if (started) continue;
    if (is_reader) {
      reader_wanted_ = true;
    } else {
      ++helpers_wanted_;
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
