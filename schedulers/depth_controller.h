#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// Finds the smallest depth (requests outstanding at the data server) that keeps the server busy.
//
// While there is more to send than the depth admits, the number outstanding is constant, and by
// Little's law throughput and latency are the same measurement: X(d) = d / L(d). At one depth
// nothing tells a server that is just busy from one with a long queue. So the controller compares
// three levels: the base depth, in force most of the time, and two probes, one above and one below.
//
//   X(up) > X(base): the server was not busy; the upper level becomes the base.
//   X(low) = X(base): the base only made a queue; the lower level becomes the base.
//   else: the base is right.
//
// This needs no model of the server: X(low) / low is 1 / L0 when the lower level has no queue, and
// then low < X(base) L0 is the rule that the bandwidth-delay product gives; when requests wait
// outside of the server too, X(d) bends slowly and the comparison still finds where it ends. What
// the levels learned moves with them: the old base is the new lower (or upper) level.
//
// Measuring. A round is `depth` completions without a break in the backlog; a level's throughput is
// completions over time of its rounds. After a change of level nothing counts until the first
// request that was sent at it is back. A round ends only where completions do not come in one
// burst, because with many equal requests in step the burst at its end would count as work without
// time. A phase ends after a number of rounds set beforehand: ending when its time is up would
// count long rounds more often than short ones. Counting completions, not the latencies of the
// requests sent, leaves the noise of slow requests out when they do not hold up the server.
//
// Deciding. The variance of a level's mean comes from the means of blocks of 1, 8 and 64 rounds, of
// which the largest counts: one slow request disturbs many rounds, which then are not independent.
// A step is taken when the difference exceeds the noise, so a noisy server takes more rounds and
// not worse decisions. Steps upwards are a doubling as long as that nearly doubles the throughput.
//
// Cost. A lower probe loses throughput, so the next one waits until the loss is 1/80 of the time;
// if it lost nothing it may follow at once. While settling (at first, after large steps, and when
// the server changed) it may lose much more. A level that suddenly measures differently from
// before means that the server changed: everything measured is forgotten, the depth stays.
//
// Starvation. Rounds that it breaks are dropped. Without backlog nothing is learned and the depth
// stays; an upper probe that the demand cannot fill teaches nothing, so demand bounds the depth.
//
// Integers only; every call is O(1) and nothing allocates.
class DepthController {
 public:
  struct Settings {
    std::uint32_t least = 1;
    std::uint32_t most = 1024;  // up to 65536
  };

  explicit DepthController(Settings settings);

  // In force now. It changes only inside completed() and starved(); when it falls, the caller
  // sends nothing until enough has come back.
  [[nodiscard]] std::uint32_t depth() const { return level(phase_).depth; }
  // The same without probes.
  [[nodiscard]] std::uint32_t base_depth() const { return level(Phase::base).depth; }

  // Measures from the depth on that a controller before it has found. REQUIRES: nothing was sent.
  void begin_with(std::uint32_t found);

  // `now` never goes back. A request was sent; `outstanding` includes it.
  void dispatched(std::uint32_t outstanding, TimePoint now);
  // One that was sent at `sent` came back; `outstanding` no longer counts it.
  void completed(TimePoint sent, std::uint32_t outstanding, TimePoint now);
  // Nothing was queued although the depth had room: what is measured now says nothing about the
  // server.
  void starved(TimePoint now);

 private:
  // Parts of one in units of 2^-20.
  using Part = std::int64_t;
  enum class Phase : std::uint8_t { base, up, low };

  static constexpr std::uint64_t kLeastRounds = 6;  // to say anything
  static constexpr std::uint64_t kLongestRound = std::uint64_t{1} << 40;

  // Completions and the time they took.
  struct Sample {
    std::uint64_t rounds = 0;
    std::uint64_t done = 0;
    std::uint64_t time = 0;  // in nanoseconds

    void add(const Sample& other) {
      rounds += other.rounds;
      done += other.done;
      time += other.time;
    }
    void scale(std::uint64_t numerator, std::uint64_t denominator) {
      rounds = rounds * numerator / denominator;
      done = done * numerator / denominator;
      time = time * numerator / denominator;
    }
    // In nanoseconds, at least 1. REQUIRES: done > 0.
    [[nodiscard]] std::int64_t per_request() const {
      return static_cast<std::int64_t>(std::clamp<std::uint64_t>(time / done, 1, kLongestRound));
    }
  };

  // Means of blocks of consecutive rounds.
  struct Blocks {
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    std::uint64_t open_sum = 0;
    std::uint32_t open_rounds = 0;

    void add(std::uint64_t round, std::uint32_t size) {
      open_sum += round;
      if (++open_rounds < size) return;
      const std::uint64_t mean = open_sum / size;
      ++count;
      sum += mean;
      squares += mean * mean;
      open_sum = open_rounds = 0;
    }
    void forget_half() {
      count /= 2;
      sum /= 2;
      squares /= 2;
    }
  };

  struct Level {
    std::uint32_t depth = 1;
    Sample all = {};
    Sample recent = {};      // of the last phases, the older the less
    std::uint64_t unit = 0;  // the first round's time; blocks count in 4096ths of it
    std::array<Blocks, 3> blocks = {};

    void add(const Sample& round);
    void forget_half() {
      all.scale(1, 2);
      for (Blocks& block : blocks) block.forget_half();
    }
    [[nodiscard]] bool known() const { return all.rounds >= kLeastRounds; }
    // The variance of the mean, relative to its square.
    [[nodiscard]] Part variance() const;
    [[nodiscard]] bool differs_from(const Sample& sample) const;
  };

  [[nodiscard]] const Level& level(Phase phase) const {
    return levels_[static_cast<std::size_t>(phase)];
  }
  [[nodiscard]] Level& level(Phase phase) { return levels_[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] bool settling(TimePoint now) const { return now < settle_until_; }
  [[nodiscard]] Part variance_of(const Level& probe) const;

  void begin(Phase phase, TimePoint now);
  void end(TimePoint now);
  [[nodiscard]] Phase next_phase(TimePoint now);
  [[nodiscard]] bool server_changed();
  void start_over(TimePoint now);
  void delay_probe(TimePoint now);
  void decide(TimePoint now);
  [[nodiscard]] bool raise(bool steep, TimePoint now);
  void lower(Part loss, Part variance, TimePoint now);
  void set_up_step(std::uint32_t percent);
  void set_low_step(std::uint32_t percent);

  Settings settings_;
  std::array<Level, 3> levels_;
  std::uint32_t up_step_ = 0;  // percent

  Phase phase_ = Phase::base;
  Sample measured_;           // in this phase
  Level before_;              // this phase
  std::uint64_t rounds_ = 0;  // that this phase takes; unknown when zero
  bool starved_ = false;      // in this phase
  TimePoint phase_begin_ = {};
  TimePoint settle_until_ = {};
  TimePoint next_up_ = {};
  TimePoint next_low_ = {};
  bool low_is_due_ = false;  // the last probe was an upper one
  bool low_costs_ = false;   // throughput, beyond doubt

  bool started_ = false;
  bool full_ = false;      // as many are outstanding as the depth allows, since full_since_
  bool counting_ = false;  // a round is open, since round_begin_
  TimePoint full_since_ = {};
  TimePoint round_begin_ = {};
  TimePoint last_completion_ = {};
  std::uint64_t done_ = 0;  // in the open round
};

}  // namespace vpfs
