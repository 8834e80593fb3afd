#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace vpfs::proxy {

// Handles whose queue at the data server waits for slow clients (IoDescription::handle). A transfer
// without a slot that waits for its client may keep all later requests of its handle waiting at the
// server, whoever sends them. Those that are found there are stuck: they give their slots up, and
// while some are, no further request of the handle is sent behind them.
//
// Any thread may call it. Without slow transfers it costs one load.
class SlowHandles {
 public:
  // A transfer of the handle waits for its slow client, without a slot; until the transfer ends.
  void slowed(std::uint64_t handle);
  void slow_ended(std::uint64_t handle);
  // A request is stuck; until the server answers it, or it ends.
  void stuck(std::uint64_t handle);
  void stuck_ended(std::uint64_t handle);

  // Whether some handle is slow.
  [[nodiscard]] bool any() const { return slow_.load(std::memory_order_relaxed) > 0; }
  [[nodiscard]] bool is_slow(std::uint64_t handle) const;
  // Whether requests of the handle are kept back: it is slow, and some are stuck.
  [[nodiscard]] bool is_blocked(std::uint64_t handle) const;
  // How often a handle was blocked or slow no more.
  [[nodiscard]] std::uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }
  // How often more requests had to be held back: a handle was blocked, or hold_back() was called.
  [[nodiscard]] std::uint64_t held_back() const {
    return held_back_.load(std::memory_order_relaxed);
  }
  // An application has used up what its requests may wait in such queues.
  void hold_back() { ++held_back_; }

 private:
  struct Counts {
    std::size_t slow = 0;
    std::size_t stuck = 0;

    [[nodiscard]] bool is_blocked() const { return slow > 0 && stuck > 0; }
  };
  void add_one(std::uint64_t handle, std::size_t Counts::*of);
  void end_one(std::uint64_t handle, std::size_t Counts::*of);
  [[nodiscard]] Counts find(std::uint64_t handle) const;

  std::atomic<std::size_t> slow_ = 0;  // transfers, of all handles
  std::atomic<std::uint64_t> freed_ = 0;
  std::atomic<std::uint64_t> held_back_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  // Only what is not zero. In order: peers choose the handles.
  std::map<std::uint64_t, Counts> counts_;
};

}  // namespace vpfs::proxy
