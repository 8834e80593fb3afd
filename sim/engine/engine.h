#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vpfs::sim {

// Virtual time: events happen one after the other, each at its time, and time stands still while
// one happens. Of events of one time those of the lowest rank come first, those of one rank in the
// order of at(): a run is the same every time. All is O(log n) in the events to come.
//
// An event that is overdue, since time was skipped or at() was told a time in the past, happens
// now.
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
  // False: it has happened, or was cancelled before.
  bool cancel(EventId event);

  // When the next event happens; TimePoint::max(): there is none.
  [[nodiscard]] TimePoint next() const;
  // Whether it happens now and has this rank.
  [[nodiscard]] bool next_is_now(Rank rank) const;
  // Has the next event happen. False: there is none up to `end`.
  bool step(TimePoint end = TimePoint::max());
  // All events up to `end`; then it is `end`.
  void run_until(TimePoint end);
  // It is that late, and no event happens. Nothing if it is later already.
  void skip_to(TimePoint time);

 private:
  struct Event {
    TimePoint time;
    std::uint64_t order = 0;  // of at()
    Action action;
    Rank rank = 0;
    std::uint32_t place = 0;       // in the heap
    std::uint32_t generation = 0;  // of the slot
  };

  [[nodiscard]] bool before(std::uint32_t one, std::uint32_t other) const;
  void put(std::size_t place, std::uint32_t slot);
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);
  Action take_out(std::size_t place);

  std::vector<Event> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> heap_;  // of slots, by time, rank and order
  std::uint64_t count_ = 0;          // of calls of at()
  TimePoint now_ = {};
};

}  // namespace vpfs::sim
