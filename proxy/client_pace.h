#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "net/async.h"
#include "stage/held.h"

namespace vpfs::proxy {

// How far one direction of a client is behind the least rate at which it may send, or take, file
// data while the data server waits for it. A client that catches up is not ahead: what it sends
// faster than that is no credit for a pause. Belongs to a session; looked at a few times a second.
class ClientPace {
 public:
  // `total` counts bytes since the start and never goes back. The lag is zero while the data server
  // does not wait for the client. A look that comes late, because the proxy itself had no time,
  // counts as one in time.
  Duration look(TimePoint now, bool server_waits, std::uint64_t total, BytesPerSecond least);
  // Whether anything has moved between the last two looks.
  [[nodiscard]] bool moving() const { return moving_; }
  // Whether, since the lag began, less than a sixteenth of the least rate has: that is no slow
  // link.
  [[nodiscard]] bool hardly_moves(BytesPerSecond least) const;

 private:
  TimePoint looked_ = {};
  std::uint64_t total_ = 0;
  Duration lag_ = Duration::zero();
  bool moving_ = false;
  Duration lagging_for_ = Duration::zero();
  std::uint64_t moved_meanwhile_ = 0;
};

// How long applications may keep slots at the data server while that waits for their clients.
//
// Each application has, for each address that its clients come from, a third of `client_stall`, and
// gets the same again in a minute. Who has used it up goes on with less: a connection that stalled
// sends its requests one by one and without slots until some of the time is there again. Where
// others of the application's connections from that address stall meanwhile, and as much again is
// used up, all of them wait. So an application costs others no more than `client_stall` in any
// minute, however many connections it stalls, in turn or at once.
//
// May be used from any thread. Costs one load while nobody has stalled within a minute.
class StallBudgets {
 public:
  // A lag below this is a hiccup, not a stall.
  [[nodiscard]] static Duration grace(Duration client_stall) { return client_stall / 8; }

  // Slots of the application waited for a client at the address between `begin` and `end`; time
  // that several connections waited at once counts once. Returns whether some is left.
  [[nodiscard]] bool take(stage::VirtualPfsId whose, const asio::ip::address& address,
                          TimePoint begin, TimePoint end, Duration client_stall);
  // Whether all that have stalled have all of their time again.
  [[nodiscard]] bool nobody_stalled() const { return known_.load(std::memory_order_relaxed) == 0; }
  enum class Standing : std::uint8_t {
    good,
    stalled,  // connections that stalled do not get slots
    blocked,  // no connection does
  };
  [[nodiscard]] Standing standing(stage::VirtualPfsId whose, const asio::ip::address& address,
                                  TimePoint now, Duration client_stall);

 private:
  struct Budget {
    Duration left = Duration::zero();
    TimePoint filled = {};  // when `left` was right
    TimePoint taken_until = {};
    bool blocked = false;
  };
  using Key = std::pair<stage::VirtualPfsId, asio::ip::address>;

  static void fill(Budget& budget, TimePoint now, Duration client_stall);
  void forget_full_ones(TimePoint now, Duration client_stall);

  std::atomic<std::size_t> known_ = 0;  // size of budgets_
  std::mutex mutex_;                    // guards what follows
  std::map<Key, Budget> budgets_;       // of those that have not all of their time
  TimePoint looked_through_ = {};
};

}  // namespace vpfs::proxy
