#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "net/splice_pipe.h"
#include "proxy/pump/socket_calls.h"

namespace vpfs::proxy {

class Pump;
class PumpOwner;

// What the pumps of one thread share: the current event and its time, buffers that are used within
// one event, idle pipes, and the waits that start at the end of the event.
class PumpThread {
 public:
  // The pieces that one call sends to one socket. The bytes are borrowed.
  using Parts = std::vector<std::span<const std::byte>>;

  // `at_end` runs at the end of each event. It must call start_waits().
  PumpThread(const Clock& clock, SocketCalls& calls, std::function<void()> at_end);

  // The handling of one event. Every asynchronous handler, and a coroutine after every wait,
  // creates one before it uses anything here. Its constructor reads the clock; nothing else does.
  class Event {
   public:
    explicit Event(PumpThread& thread);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

   private:
    PumpThread& thread_;
  };

  // The time at which the event began. It is older than the work by less than one event; deadlines
  // have margins of seconds. It never goes back.
  [[nodiscard]] TimePoint now() const { return now_; }
  // The number of the event.
  [[nodiscard]] std::uint64_t event() const { return event_; }

  // Starts a wait for the pump's source at the end of the event. A wait costs a system call, so the
  // event's bytes go out first.
  void watch_later(Pump& pump) { to_watch_.push_back(&pump); }
  [[nodiscard]] bool has_waits() const { return !to_watch_.empty(); }
  void start_waits();

  // Whether one owner has had every event for a while, so no other owner waits for this thread.
  [[nodiscard]] bool alone() const { return events_in_a_row_ >= kAlone; }
  // A source of this owner has become readable.
  void is_event_of(const PumpOwner& owner) {
    events_in_a_row_ = &owner == last_owner_ ? events_in_a_row_ + 1 : 0;
    last_owner_ = &owner;
  }

  [[nodiscard]] std::span<std::byte> scratch() { return scratch_; }
  // The received bytes to forward, and the pieces of one call. A call of an owner's may overwrite
  // both.
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
