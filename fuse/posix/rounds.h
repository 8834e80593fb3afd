#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/result.h"

namespace vpfs::fuse {

// Calls a function ten times a second while it has something to do, in a thread of its own that
// never acts for a user. Thread-safe.
class Rounds {
 public:
  // Returns whether another round is needed, whatever happens meanwhile.
  using Round = std::function<bool()>;

  explicit Rounds(Round round) : round_(std::move(round)) {}
  ~Rounds() { stop(); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // REQUIRES: the calling thread has never acted for a user.
  [[nodiscard]] Result<void> start();
  // Waits for the round that is under way; there is none after it.
  void stop();
  // There is something to do. Costs little if rounds are made already.
  void wake() {
    if (!is_awake_ && !is_awake_.exchange(true)) wake_thread();
  }

 private:
  void run();
  void wake_thread();

  const Round round_;
  std::atomic<bool> is_awake_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace vpfs::fuse
