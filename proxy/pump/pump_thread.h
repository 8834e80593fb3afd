#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "net/epoll_set.h"
#include "net/splice_pipe.h"
#include "proxy/pump/socket_calls.h"

namespace vpfs::proxy {

class Pump;
class PumpOwner;

// What the pumps of one thread share: the current event and its time, buffers that are used within
// one event, idle pipes, the wait for their sockets, and the pumps that go on without one.
class PumpThread {
 public:
  // The pieces that one call sends to one socket. The bytes are borrowed.
  using Parts = std::vector<std::span<const std::byte>>;

  // `at_end` runs at the end of each event. The set is served by this thread.
  PumpThread(net::EpollSet& set, const Clock& clock, SocketCalls& calls,
             std::function<void()> at_end);

  // The handling of one event. Whatever the thread is woken for creates one before it uses anything
  // here. Its constructor reads the clock; nothing else does.
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

  // The pump has had its turn, and its source has more: it goes on after the others. It must call
  // forget() before it ends.
  void go_on_later(Pump& pump) { to_go_on_.push_back(&pump); }
  void forget(const Pump& pump);
  // Whether some pump is to go on, so that the thread must not sleep.
  [[nodiscard]] bool has_more() const { return !to_go_on_.empty(); }
  // Gives each of these pumps one turn. Called between two waits.
  void go_on();

  // Whether one owner has had every event for a while, so no other owner waits for this thread.
  [[nodiscard]] bool alone() const { return events_in_a_row_ >= kAlone; }
  // A pump of this owner has its turn to read.
  void is_event_of(const PumpOwner& owner) {
    events_in_a_row_ = &owner == last_owner_ ? events_in_a_row_ + 1 : 0;
    last_owner_ = &owner;
  }

  [[nodiscard]] std::span<std::byte> scratch() { return scratch_; }
  // The received bytes to forward, and the pieces of one call. A call of an owner's may overwrite
  // both.
  [[nodiscard]] Parts& runs() { return runs_; }
  [[nodiscard]] Parts& parts() { return parts_; }
  [[nodiscard]] net::EpollSet& set() { return set_; }
  [[nodiscard]] net::PipePool& pipes() { return pipes_; }
  [[nodiscard]] SocketCalls& calls() { return calls_; }

 private:
  static constexpr std::size_t kAlone = 16;
  static constexpr std::size_t kScratchSize = std::size_t{256} * 1024;

  net::EpollSet& set_;
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
  std::vector<Pump*> to_go_on_;
  std::vector<Pump*> going_on_;            // null: it has had its turn, or is gone
  const PumpOwner* last_owner_ = nullptr;  // only compared
  std::size_t events_in_a_row_ = 0;
};

}  // namespace vpfs::proxy
