#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "net/splice_pipe.h"
#include "proxy/socket_calls.h"

namespace vpfs::proxy {

class Pump;
class PumpOwner;

// What the pumps of one thread share: the event that is being handled and its time, buffers that
// are used only within one event, idle pipes, and the waits that begin when the event is over.
class PumpThread {
 public:
  // What one call sends to one socket; the bytes are borrowed.
  using Parts = std::vector<std::span<const std::byte>>;

  // `at_end` runs at the end of each event; it calls start_waits().
  PumpThread(const Clock& clock, SocketCalls& calls, std::function<void()> at_end);

  // The handling of one event. Every handler of an asynchronous operation, and each part of a
  // coroutine behind a wait, makes one before it does anything here. The clock is read at the
  // beginning, and nowhere else.
  class Event {
   public:
    explicit Event(PumpThread& thread);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

   private:
    PumpThread& thread_;
  };

  // The time when the event began. It never goes back.
  [[nodiscard]] TimePoint now() const { return now_; }
  // A number for each event, which tells whether something began in the current one.
  [[nodiscard]] std::uint64_t event() const { return event_; }

  // Begins a wait for the pump's source at the end of the event: a wait costs a system call, and
  // the event's bytes are to be on their way first.
  void watch_later(Pump& pump) { to_watch_.push_back(&pump); }
  [[nodiscard]] bool has_waits() const { return !to_watch_.empty(); }
  void start_waits();

  // Tells whether one owner has had every event for a while, so that nobody else waits for this
  // thread.
  [[nodiscard]] bool alone() const { return events_in_a_row_ >= kAlone; }
  // The event is a source of this owner that has become readable.
  void is_event_of(const PumpOwner& owner) {
    events_in_a_row_ = &owner == last_owner_ ? events_in_a_row_ + 1 : 0;
    last_owner_ = &owner;
  }

  [[nodiscard]] std::span<std::byte> scratch() { return scratch_; }
  // The received bytes that are to go on, and those of one call. Each is free for use between two
  // calls of an owner's.
  [[nodiscard]] Parts& runs() { return runs_; }
  [[nodiscard]] Parts& parts() { return parts_; }
  [[nodiscard]] net::PipePool& pipes() { return pipes_; }
  [[nodiscard]] SocketCalls& calls() { return calls_; }

 private:
  static constexpr std::size_t kAlone = 16;
  static constexpr std::size_t kScratchSize = std::size_t{256} * 1024;

  const Clock& clock_;
  SocketCalls& calls_;
  const std::function<void()> at_end_;
  TimePoint now_ = {};
  std::uint64_t event_ = 0;
  bool in_event_ = false;

  std::vector<std::byte> scratch_;
  Parts runs_;
  Parts parts_;
  net::PipePool pipes_;
  std::vector<Pump*> to_watch_;
  const PumpOwner* last_owner_ = nullptr;  // only compared
  std::size_t events_in_a_row_ = 0;
};

}  // namespace vpfs::proxy
