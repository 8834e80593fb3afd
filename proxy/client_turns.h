#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "base/clock.h"

namespace vpfs::proxy {

// The order in which the requests of one slow client go while others wait: one at a time, the
// oldest first. The time for which a request keeps the data server waiting is a debt, and the
// client pauses for as long after it. A turn and a pause last for `client_stall` at most, so the
// client is never stopped for longer. One at a time, a link carries as much as with many at once.
//
// A data structure without a lock; the owner passes the time.
class ClientTurns {
 public:
  // A request. Older ones compare less.
  struct Ticket {
    TimePoint arrival = {};
    std::size_t worker = 0;
    std::uint64_t number = 0;  // unique for the worker

    auto operator<=>(const Ticket&) const = default;
  };

  // Gives the request its turn, or lets it wait for one until the next call or withdraw(). True for
  // one that has it.
  [[nodiscard]] bool take(const Ticket& ticket, TimePoint now, Duration client_stall);
  // The request goes in another way, or has ended.
  void withdraw(const Ticket& ticket) { waiting_.erase(ticket); }
  // The request has ended, or its client does not move. Does nothing after its turn.
  void end(const Ticket& ticket, TimePoint now, Duration client_stall);
  // Ends a turn that has lasted too long.
  void expire(TimePoint now, Duration client_stall);
  // The request with the turn kept the data server waiting for so long, while others waited.
  void owe(Duration more) { owed_ += more; }
  [[nodiscard]] bool idle() const { return !current_ && waiting_.empty(); }

 private:
  void end_turn(TimePoint now, Duration client_stall);

  std::optional<Ticket> current_;
  TimePoint begun_ = {};
  TimePoint pauses_until_ = {};
  Duration owed_ = Duration::zero();
  std::set<Ticket> waiting_;
};

}  // namespace vpfs::proxy
