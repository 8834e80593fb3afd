#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace vpfs::control {

// A mutex for long work in many short steps beside threads that are in a hurry. A std::mutex goes
// to whoever asks first once it is free: that is the thread that has just given it back, since the
// others have yet to wake up.
class CourteousMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // Whether a thread waits for it.
  [[nodiscard]] bool is_wanted() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // Between two steps, without the lock: returns when no thread waits for it. Bounded: so many
  // threads may come that one always waits.
  void give_way() const {
    for (int i = 0; i < kMostYields && is_wanted(); ++i) {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kMostYields = 100;

  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

}  // namespace vpfs::control
