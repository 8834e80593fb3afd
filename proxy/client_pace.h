#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "net/async.h"
#include "proxy/client_turns.h"
#include "stage/held.h"

namespace vpfs::proxy {

// How far one direction of a client lags behind the least rate at which it may send or take file
// data while the data server waits for it. A client that catches up is not ahead: sending faster
// earns no credit for a pause. Belongs to a session, which looks a few times a second.
class ClientPace {
 public:
  // `total` counts bytes since the start and never goes back. The lag is zero while the data server
  // does not wait for the client. A look that comes late because the proxy was busy counts as a
  // timely one.
  Duration look(TimePoint now, bool server_waits, std::uint64_t total, BytesPerSecond least);
  // Whether anything has moved between the last two looks.
  [[nodiscard]] bool moving() const { return moving_; }
  // Whether the client moved at less than a sixty-fourth of the least rate in the last whole second
  // of the lag. A slow link is faster, even if many connections share it.
  [[nodiscard]] bool hardly_moves() const { return hardly_moves_; }
  [[nodiscard]] Duration lag() const { return lag_; }

 private:
  TimePoint looked_ = {};
  std::uint64_t total_ = 0;
  Duration lag_ = Duration::zero();
  bool moving_ = false;
  // The second of the lag that has begun.
  Duration lagging_for_ = Duration::zero();
  std::uint64_t moved_meanwhile_ = 0;
  bool hardly_moves_ = false;
};

// How long applications may keep slots at the data server that waits for their clients, while
// others wait for these slots. Callers charge no other time.
//
// Each application has a budget for each address that its clients come from: a third of
// `client_stall`, refilled at that much per minute. When it is used up, a connection that stalled
// sends its requests one by one and without slots until part of the budget is back. If other
// connections of the application at that address stall meanwhile and use up as much again, no
// request of them takes a slot, and they go in turn (ClientTurns). So do, at once, those of
// connections that take the place of ones that ended on probation. So an application costs others
// no more than `client_stall` in any minute, however many connections it stalls, in turn or at
// once.
//
// Any thread may call it. It costs one load if no client has stalled within a minute.
class StallBudgets {
 public:
  // A lag below this is a hiccup, not a stall.
  [[nodiscard]] static Duration grace(Duration client_stall) { return client_stall / 8; }

  // The application's slots waited for a client at the address between `begin` and `end`. Time
  // during which several connections waited counts once. Returns whether some of the budget is
  // left.
  [[nodiscard]] bool take(stage::VirtualPfsId whose, const asio::ip::address& address,
                          TimePoint begin, TimePoint end, Duration client_stall);
  // Whether all budgets are full.
  [[nodiscard]] bool nobody_stalled() const { return known_.load(std::memory_order_relaxed) == 0; }
  enum class Standing : std::uint8_t {
    good,
    stalled,  // connections that stalled do not get slots
    slow,     // no connection does, and their requests go in turn
  };
  [[nodiscard]] Standing standing(stage::VirtualPfsId whose, const asio::ip::address& address,
                                  TimePoint now, Duration client_stall);

  // A connection on probation has ended: the next one that begins takes its place. Does nothing for
  // an application whose budget is full.
  void closed(stage::VirtualPfsId whose, const asio::ip::address& address, TimePoint now);
  // Whether a connection that began at that time takes the place of one that had ended. Each of
  // these is replaced once, and is forgotten when the standing is good again.
  [[nodiscard]] bool replaces_closed(stage::VirtualPfsId whose, const asio::ip::address& address,
                                     TimePoint begun);

  // As ClientTurns has them, for the application at the address.
  [[nodiscard]] bool take_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                               const ClientTurns::Ticket& ticket, TimePoint now,
                               Duration client_stall);
  void end_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                const ClientTurns::Ticket& ticket, TimePoint now, Duration client_stall);
  void withdraw_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                     const ClientTurns::Ticket& ticket);
  // A request without a slot keeps the data server itself busy waiting, while others wait.
  void owe(stage::VirtualPfsId whose, const asio::ip::address& address, Duration more);

 private:
  struct Budget {
    Duration left = Duration::zero();
    TimePoint filled = {};  // when `left` was computed
    TimePoint taken_until = {};
    bool slow = false;
    std::size_t closed = 0;  // connections on probation that no new one has replaced
    TimePoint first_closed = {};
    ClientTurns turns;
  };
  using Key = std::pair<stage::VirtualPfsId, asio::ip::address>;

  static bool is_good(const Budget& budget, Duration client_stall);
  static void fill(Budget& budget, TimePoint now, Duration client_stall);
  void forget_full_ones(TimePoint now, Duration client_stall);

  std::atomic<std::size_t> known_ = 0;  // size of budgets_
  std::mutex mutex_;                    // guards what follows
  std::map<Key, Budget> budgets_;       // only those that are not full, or have turns
  TimePoint looked_through_ = {};
};

}  // namespace vpfs::proxy
