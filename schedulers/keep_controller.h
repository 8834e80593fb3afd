#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// Decides how many requests of others a flow that is expected may find at the data server. Few of
// them make its way short. Fewer than what keeps the server busy cost throughput, and of that no
// more than a given part may go.
//
// What nobody keeps a slot for is measured in short reference phases: the throughput of a full
// depth, which is what `fifo` would have. Between them a balance is kept, in cost:
//
//   balance += cost done - (1 - max_loss) x reference x time
//
// While it is not negative the level is in force, else the next one above it; so the loss stays at
// its bound however much slower the level is. A balance that stays at its upper end says that the
// level is cheap: a lower one is tried. One that stays at its lower end says that even the next
// level is too dear, and the level rises.
//
// A lower level is tried only while it can bring something: while the expected requests stand in a
// queue at the server. By Little's law a request that finds n others takes at least (n + 1) / X
// then, X being the throughput. If it takes longer, the others did not delay it.
//
// Integers only; every call is O(1) and nothing allocates.
class KeepController {
 public:
  // The loss in thousandths, 1 ... 1000.
  explicit KeepController(std::uint32_t max_loss) : max_loss_(max_loss) {}

  // Somebody is expected. Without a call for a while, nothing is measured.
  void want(TimePoint now) {
    idle_ = 0;
    if (phase_ == Phase::off) begin_reference(now);
  }
  // Whether requests may be held back now.
  [[nodiscard]] bool may_keep() const { return phase_ == Phase::keeping; }
  // How many may be at the server when the expected flow comes back after `left`.
  [[nodiscard]] std::uint64_t may_be_outstanding(Duration left) const {
    const auto time = static_cast<std::uint64_t>(std::clamp<std::int64_t>(left.count(), 0, kFar));
    return level() + (time * requests_per_time_ >> kRequestBits);
  }
  [[nodiscard]] std::uint32_t level() const { return balance_ < 0 ? level_ + step_up() : level_; }

  // Something is done. `is_backlogged`: a request waits that may go; `outstanding` are still there.
  void completed(Cost cost, TimePoint sent, std::uint32_t outstanding, bool is_backlogged,
                 TimePoint now) {
    if (phase_ != Phase::off) count(cost, sent, outstanding, is_backlogged, now);
  }
  // The same one was of an expected flow, and was one of `found` at the server when it was sent.
  void answered(std::uint32_t found, Duration response);
  // Nothing waits although the depth has room.
  void starved(TimePoint now) {
    if (phase_ == Phase::filling || phase_ == Phase::measuring) begin_reference(now);
  }

  // In cost per second; 0: not known yet.
  [[nodiscard]] std::uint64_t reference() const;

 private:
  enum class Phase : std::uint8_t { off, filling, measuring, keeping };
  // What flows by in a nanosecond, fixed point.
  static constexpr int kRateBits = 24;
  static constexpr int kRequestBits = 32;
  static constexpr std::int64_t kFar = std::int64_t{1} << 31;
  static constexpr std::uint32_t kIdle = 4096;             // completions without a call of want()
  static constexpr std::uint32_t kReferenceInverse = 200;  // the part of reference phases
  static constexpr std::uint32_t kFloorLasts = 2048;       // answers

  [[nodiscard]] std::uint32_t step_up() const { return std::max(1U, level_ / 8); }
  void begin_reference(TimePoint now);
  void end_reference(TimePoint now, std::uint32_t outstanding);
  void count(Cost cost, TimePoint sent, std::uint32_t outstanding, bool is_backlogged,
             TimePoint now);
  void measure(Cost cost, TimePoint sent, std::uint32_t outstanding, TimePoint now);
  void settle(Cost cost, std::uint32_t outstanding, bool is_backlogged, TimePoint now);
  void set_rate(std::uint64_t rate);
  void move_to(std::uint32_t level, std::uint32_t outstanding);
  [[nodiscard]] bool lower_helps() const;

  std::uint32_t max_loss_;
  Phase phase_ = Phase::off;
  bool was_backlogged_ = false;
  std::uint32_t idle_ = 0;

  // Of what is done, as seen lately.
  std::uint64_t rate_ = 0;               // reference, fixed point
  std::uint64_t least_rate_ = 0;         // the same less the loss
  std::uint64_t requests_per_time_ = 0;  // the reference in requests
  std::uint64_t mean_cost_ = 0;
  TimePoint last_ = {};

  // The reference phase.
  TimePoint phase_begin_ = {};
  Cost measured_ = 0;
  std::uint32_t measured_requests_ = 0;
  std::uint32_t phase_requests_ = 0;
  std::uint32_t until_reference_ = 0;  // completions

  // The level.
  std::uint32_t level_ = 0;
  std::uint32_t most_ = 0;      // that it may be: what a reference phase had outstanding
  std::uint32_t settling_ = 0;  // completions until it may move again
  std::int64_t balance_ = 0;
  std::uint32_t floor_ = 0;  // below it nothing was gained lately
  std::uint32_t floor_lasts_ = 0;
  std::uint32_t answers_ = 0;  // since the level moved
  std::uint64_t found_ = 0;
  std::uint64_t responses_ = 0;
};

}  // namespace vpfs
