#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// Decides how many requests of others a flow that is expected may find at the data server. Few of
// them make its way short. Fewer than what keeps the server busy cost throughput, and of that no
// more than a given part may go.
//
// The throughput without kept slots is measured in short reference phases: that of a full depth,
// which is what `fifo` would have. Between them a balance is kept, in cost:
//
//   balance += cost done - (1 - max_loss) x reference x time
//
// While it is not negative the level is in force, else the next one above it; so the loss stays at
// its bound however much slower the level is. A balance that stays at its upper end says that the
// level is cheap: a lower one is tried. One that stays at its lower end says that even the next
// level is too dear, and the level rises.
//
// A balance that was high may lose all of it, and its debt, within a second. So the loss of the
// last second is counted as well, and nothing is kept while it is beyond the bound and what is
// noise.
//
// Those ends are far, for a level that is found. On the way down to it much less is enough: a slow
// server would take a minute for each level. To go too far down costs no more than the bound.
//
// A lower level is tried only while it can bring something: while the flows that come back say that
// they get less than they could. When they say that they do not, the level rises.
//
// Integers only; every call is O(1) and nothing allocates.
class KeepController {
 public:
  // The loss in thousandths, 1 ... 1000.
  explicit KeepController(std::uint32_t max_loss) : max_loss_(max_loss) {}

  // A flow is expected. Without a call for a while, nothing is measured.
  void want(TimePoint now) {
    idle_ = 0;
    if (phase_ == Phase::off) begin_reference(now);
  }
  // Whether requests may be held back now.
  [[nodiscard]] bool may_keep() const {
    return phase_ == Phase::keeping && !is_in_debt_ && !has_lost_its_second_;
  }
  // How many may be at the server if the expected flow comes back after `left`, and gets less than
  // it could.
  [[nodiscard]] std::uint64_t may_be_outstanding(Duration left, bool is_behind) const {
    const auto time = static_cast<std::uint64_t>(std::clamp<std::int64_t>(left.count(), 0, kFar));
    return level(is_behind) + (time * requests_per_time_ >> kRequestBits);
  }
  [[nodiscard]] std::uint32_t level(bool is_behind) const {
    return balance_ < 0 || !is_behind ? level_ + step_up() : level_;
  }

  // A request is held back.
  void keeps() { kept_ = true; }
  // Something is done. `is_backlogged`: a request waits that may go; `outstanding` are still there.
  void completed(Cost cost, TimePoint sent, std::uint32_t outstanding, bool is_backlogged,
                 TimePoint now) {
    if (phase_ != Phase::off) count(cost, sent, outstanding, is_backlogged, now);
  }
  // A flow that was expected came back and gets less than it could.
  void is_behind() { since_behind_ = 0; }
  // Nothing waits although the depth has room.
  void starved() { was_starved_ = true; }

  // All cost done since the first call of want(), and how long the server takes for so much.
  [[nodiscard]] Cost work() const { return work_; }
  [[nodiscard]] Duration time_of(Cost cost) const;
  // Whether levels have been tried down to where they no longer help, or cost too much.
  [[nodiscard]] bool has_explored() const { return has_explored_ && phase_ == Phase::keeping; }

  // In cost per second; 0: not known yet.
  [[nodiscard]] std::uint64_t reference() const;

  // What a successor goes on from, between two phases; it measures anew what a phase had found.
  template <typename Archive>
  void archive(Archive& fields) {
    fields("phase", phase_);
    fields("has_explored", has_explored_);
    fields("rate", rate_);
    fields("least_rate", least_rate_);
    fields("requests_per_time", requests_per_time_);
    fields("time_per_cost", time_per_cost_);
    fields("mean_cost", mean_cost_);
    fields("references", references_);
    fields("until_reference", until_reference_);
    fields("level", level_);
    fields("most", most_);
    fields("balance", balance_);
    if constexpr (Archive::kReads) {
      // A phase that was not over is begun again by the next call of want().
      if (phase_ != Phase::keeping) phase_ = Phase::off;
    }
  }

 private:
  enum class Phase : std::uint8_t { off, filling, measuring, keeping };
  // What flows by in a nanosecond, fixed point.
  static constexpr int kRateBits = 24;
  static constexpr int kRequestBits = 32;
  static constexpr int kTimeBits = 32;
  static constexpr std::int64_t kFar = std::int64_t{1} << 31;
  static constexpr std::uint32_t kIdle = 4096;  // completions without a call of want()
  // The part of reference phases: the first ones are long and come soon.
  static constexpr std::uint32_t kEarly = 3;  // phases
  static constexpr std::uint32_t kFirstInverse = 16;
  static constexpr std::uint32_t kReferenceInverse = 400;
  static constexpr std::uint32_t kStarvedInverse = 200;  // of those that say little
  static constexpr std::uint32_t kMeanOf = 8;            // phases

  // The balance on both sides of the time between two completions, where a burst of completions
  // does not count.
  // The last second of the balance.
  static constexpr Duration kPart = std::chrono::milliseconds(50);
  static constexpr std::size_t kParts = 20;

  struct Gap {
    std::int64_t before = 0;
    std::int64_t after = 0;
    bool is_in_burst = false;
  };

  [[nodiscard]] std::uint32_t step_up() const { return std::max(1U, level_ / 8); }
  void begin_reference(TimePoint now);
  void end_reference(TimePoint now, std::uint32_t outstanding);
  void count(Cost cost, TimePoint sent, std::uint32_t outstanding, bool is_backlogged,
             TimePoint now);
  void measure(Cost cost, TimePoint sent, std::uint32_t outstanding, TimePoint now);
  void settle(Cost cost, std::uint32_t outstanding, bool is_backlogged, TimePoint now);
  [[nodiscard]] Gap weigh(Cost cost, std::uint32_t outstanding, bool is_backlogged, TimePoint now);
  void descend(const Gap& gap, std::uint32_t outstanding);
  void set_rate(std::uint64_t rate);
  [[nodiscard]] std::uint32_t references_inverse() const;
  void move_to(std::uint32_t level, std::uint32_t outstanding);
  void count_second(std::int64_t gain, std::uint32_t outstanding, TimePoint now);

  std::uint32_t max_loss_;
  Phase phase_ = Phase::off;
  bool was_backlogged_ = false;
  bool kept_ = false;             // something since the last completion
  std::uint32_t after_keep_ = 0;  // completions among which something that was kept back is missed
  std::uint32_t left_ = 0;        // outstanding at the last completion
  bool is_in_debt_ = false;
  bool is_descending_ = false;
  bool has_explored_ = false;
  bool was_starved_ = false;  // in the reference phase
  std::uint32_t idle_ = 0;

  // How much is done in a time, as seen lately.
  std::uint64_t rate_ = 0;               // reference, fixed point
  std::uint64_t least_rate_ = 0;         // the same less the loss
  std::uint64_t requests_per_time_ = 0;  // the reference in requests
  std::uint64_t time_per_cost_ = 0;      // of the reference, in nanoseconds, fixed point
  std::uint64_t mean_cost_ = 0;
  Cost work_ = 0;
  TimePoint last_ = {};

  // The reference phase.
  TimePoint phase_begin_ = {};
  Cost measured_ = 0;
  std::uint32_t measured_requests_ = 0;
  std::uint32_t phase_requests_ = 0;
  std::uint32_t references_ = 0;       // of this server, kEarly + 1 at most
  std::uint32_t until_reference_ = 0;  // completions

  // The level.
  std::uint32_t level_ = 0;
  std::uint32_t most_ = 0;      // that it may be: what a reference phase had outstanding
  std::uint32_t tried_ = 0;     // completions, on the way down
  std::uint32_t settling_ = 0;  // completions until it may move again
  std::int64_t balance_ = 0;
  std::uint32_t since_behind_ = 0;  // completions

  std::array<std::int64_t, kParts> parts_ = {};  // what the balance gained in each
  std::int64_t part_ = 0;                        // the present one, since the epoch
  std::int64_t second_ = 0;                      // the sum of all
  bool has_lost_its_second_ = false;
};

}  // namespace vpfs
