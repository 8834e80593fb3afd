#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "net/async.h"
#include "proxy/client_pace.h"
#include "proxy/pending_io.h"

namespace vpfs::proxy {

// Whether the data server waits for one client longer than the client's applications may cost
// others. A client stalls when it moves file data more slowly than the least rate and the budgets
// of its applications are used up. Only time in which others wait for slots is charged. Then its
// outstanding requests give up their slots, and its held requests wait until it moves again. After
// that it is on probation until the budget is good again: its requests go one by one and without
// slots.
//
// The watch only decides; the session acts. It looks a few times a second.
class ClientStallWatch {
 public:
  ClientStallWatch(StallBudgets& budgets, asio::ip::address client)
      : budgets_(budgets), client_(std::move(client)) {}

  struct Limits {
    BytesPerSecond least_rate;
    Duration client_stall;
  };
  // What the session sees of the client.
  struct State {
    bool takes_nothing = false;   // although there is something for it
    bool owes_data = false;       // for a request with a slot
    bool owes_late_data = false;  // for one that gave its slot up
    std::uint64_t sent = 0;       // file data since the start
    std::uint64_t taken = 0;      // bytes since the start
    bool has_held = false;        // requests
    bool others_wait = false;     // for the slots of `waiting`, or for the server of `late`
    // Outstanding requests with slots that wait for the client.
    std::span<PendingIo* const> waiting;
    // Those without slots that keep a thread of the server waiting.
    std::span<PendingIo* const> late;
  };
  enum class Verdict : std::uint8_t {
    moves,
    begins_to_stall,
    stalls,  // still
  };
  [[nodiscard]] Verdict look(const State& state, const Limits& limits, TimePoint now);

  // A new connection. One that another process had before replaces none.
  void begin(TimePoint now) { begun_ = now; }
  // The standing of a request for that application. It may show that the connection takes the place
  // of one that ended on probation: then this one is on probation too, and slow.
  [[nodiscard]] StallBudgets::Standing meet(stage::VirtualPfsId whose, Duration client_stall,
                                            TimePoint now);
  // The connection ends.
  void end(TimePoint now) {
    if (on_probation_) budgets_.closed(whose_, client_, now);
  }

  // The client has sent or taken something. Returns whether it stalled until now.
  bool moves_again() { return std::exchange(stalled_, false); }
  [[nodiscard]] bool stalled() const { return stalled_; }
  [[nodiscard]] bool on_probation() const { return on_probation_; }
  // Whether the client makes almost no progress. A slow link is faster.
  [[nodiscard]] bool hardly_moves() const {
    return sending_.hardly_moves() || taking_.hardly_moves();
  }
  // Whether the connection should end, since one without a slot keeps a thread of the data server.
  // One that has not stalled itself is closed only for what others feel, or for a whole stall.
  [[nodiscard]] bool is_hopeless(bool others_wait, Duration client_stall) const {
    return hardly_moves() && (stalled_ || !replaces_closed_ || others_wait || lag_ >= client_stall);
  }
  // Whether it was behind the least rate at the last look.
  [[nodiscard]] bool lags() const {
    return std::max(sending_.lag(), taking_.lag()) > Duration::zero();
  }
  [[nodiscard]] StallBudgets::Standing standing(stage::VirtualPfsId whose, Duration client_stall,
                                                TimePoint now) {
    if (budgets_.nobody_stalled()) return StallBudgets::Standing::good;
    return budgets_.standing(whose, client_, now, client_stall);
  }
  // The turns of a slow application's requests.
  [[nodiscard]] bool take_turn(PendingIo& io, Duration client_stall, TimePoint now);
  void leave_turns(PendingIo& io, Duration client_stall, TimePoint now);
  // Whether a stall deserves a warning; one in a minute does.
  [[nodiscard]] bool is_news(TimePoint now);

 private:
  [[nodiscard]] bool has_time_left(const State& state, Duration lag, Duration client_stall,
                                   TimePoint now);

  StallBudgets& budgets_;
  const asio::ip::address client_;
  ClientPace sending_;
  ClientPace taking_;
  bool stalled_ = false;
  bool on_probation_ = false;
  TimePoint begun_ = {};
  bool replaces_closed_ = false;        // until the probation ends
  stage::VirtualPfsId whose_;           // whose standing ends the probation
  Duration lag_ = Duration::zero();     // at the last look
  Duration unpaid_ = Duration::zero();  // of the lag, while others waited
  TimePoint told_ = {};
};

}  // namespace vpfs::proxy
