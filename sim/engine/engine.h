#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vpfs::sim {

// Virtual time. Events run one after the other, each at its time, and time does not advance while
// one runs. Events of the same time run by rank, lowest first, and then in the order of at(). So
// every run is the same. Each operation takes O(log n) of the pending events.
//
// An overdue event runs now: time was skipped, or at() was given a time in the past.
class Engine {
 public:
  using Action = std::move_only_function<void()>;
  using Rank = std::uint8_t;
  enum class EventId : std::uint64_t {};

  [[nodiscard]] TimePoint now() const { return now_; }

  EventId at(TimePoint time, Action action, Rank rank = 0);
  EventId after(Duration delay, Action action, Rank rank = 0) {
    return at(now_ + delay, std::move(action), rank);
  }
  // False: the event has run or was cancelled before.
  bool cancel(EventId event);

  // The time of the next event; kNever without one.
  [[nodiscard]] TimePoint next() const;
  // Whether the next event is due now and has this rank.
  [[nodiscard]] bool next_is_now(Rank rank) const;
  // Runs the next event. False: none is due by `end`.
  bool step(TimePoint end = kNever);
  // Runs all events up to `end` and leaves the time at `end`.
  void run_until(TimePoint end);
  // Moves the time to `time` and runs nothing. Time never goes back.
  void skip_to(TimePoint time);

 private:
  struct Event {
    TimePoint time;
    std::uint64_t order = 0;  // of at()
    Action action;
    Rank rank = 0;
    std::uint32_t place = 0;       // in the heap
    std::uint32_t generation = 0;  // of the entry, which is used again
  };

  [[nodiscard]] bool before(std::uint32_t one, std::uint32_t other) const;
  void put(std::size_t place, std::uint32_t index);
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);
  Action take_out(std::size_t place);

  std::vector<Event> events_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> heap_;  // indexes into events_, by time, rank and order
  std::uint64_t count_ = 0;          // of calls of at()
  TimePoint now_ = {};
};

}  // namespace vpfs::sim
