#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/gate/courteous_mutex.h"
#include "stage/stage.h"

namespace vpfs::control {

// A stage behind a lock. Any thread may call any method. Log lines are written outside the lock.
//
// Its owner brings requests in and takes them over within act(), in a way that fits its threads:
// with an inbox for each of them (proxy::Dispatcher), or so that any thread runs whatever it has
// released:
//
//   gate.act(now, [&](stage::Stage& stage, TimePoint at) {
//     stage.end(mine, how, at);
//     until = stage.release(at, let_go);
//     for (stage::Held* each : let_go) stage::Stage::took_over(*each);
//   });
//
// It overrides ask_again(), so that its owner asks what may go now when something other than a
// request has changed it, and reconfigure() if its threads look at the configuration too.
class StageGate {
 public:
  // REQUIRES: as stage::Stage.
  StageGate(const stage::Config& config, TimePoint now);
  virtual ~StageGate() = default;
  StageGate(const StageGate&) = delete;
  StageGate& operator=(const StageGate&) = delete;

  // The methods of stage::Stage, each under the lock.
  [[nodiscard]] stage::Place find(const stage::Classifier::Match& match, TimePoint now,
                                  std::span<const stage::RuleConfig> rules = {});
  [[nodiscard]] bool refuse(stage::Held& io, TimePoint now);
  void count_refused(const stage::Place& place, IoKind kind, Bytes size, TimePoint now);
  [[nodiscard]] stage::ClientId join_client(const std::string& name);
  void leave_client(stage::ClientId client);
  bool set_hold(Duration hold, TimePoint now);
  [[nodiscard]] std::size_t outstanding();
  [[nodiscard]] std::size_t queued();

  // Puts a configuration into force: rules, shares and jobs. One thread calls it.
  virtual void reconfigure(const stage::Config& config, TimePoint now);

  // As stage::Stage::bypass(). Says so in the log.
  void bypass(bool on, TimePoint now);
  // Takes no lock.
  [[nodiscard]] bool bypassed() const { return bypassed_.load(std::memory_order_relaxed); }

  // Requests that end from now on are written to the recorder, until another call; null: to none.
  // The recorder outlives that.
  void record(stage::Recorder* recorder, TimePoint now);
  // The number of the recording, which tells owners to describe where requests come from
  // (stage::Held::source); zero: there is none. Takes no lock.
  [[nodiscard]] std::uint32_t recording() const {
    return recording_.load(std::memory_order_relaxed);
  }
  // An origin's number in that recording; nothing if it has ended.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const stage::Origin& origin,
                                                       std::uint32_t recording);

  // Takes on a coordinator's cycle, which came at `now`, one block of virtual PFSes at a time, so
  // that no thread waits long for the lock. Then ask_again() is called, so that the owner learns
  // when the lease ends. From then on the lease ends by Stage::release() alone.
  stage::CycleAnswer allocate(const stage::Cycle& cycle,
                              std::span<const stage::Allocation> allocations, TimePoint now);

  // Retires idle virtual PFSes that all callers have forgotten. Called from time to time.
  void retire_idle(TimePoint now);

  // Copies all counters, one block of rows at a time, so that no thread waits long for the lock.
  // See stage::Stage::copy_counters() for the rows.
  void copy_counters(TimePoint now, std::vector<stage::CounterRow>& rows);
  // Calls visit(stage, now) with the lock held, for a few microseconds at most. A visitor that
  // changes something takes the stage's notices, for tell().
  template <typename Visitor>
  void inspect(TimePoint now, Visitor&& visit) {
    const std::lock_guard lock(mutex_);
    visit(stage_, advance(now));
  }
  // Between two calls of inspect(): threads that wait for the lock go first.
  void give_way() { mutex_.give_way(); }

  // Calls change(stage, now) with the lock held: requests arrive, end or are taken over. Then logs
  // the stage's notices.
  template <typename Change>
  void act(TimePoint now, Change&& change) {
    std::vector<std::string> notices;
    {
      const std::lock_guard lock(mutex_);
      change(stage_, advance(now));
      notices = stage_.take_notices();
    }
    tell(notices);
  }

 protected:
  // The owner has to call Stage::release() soon: the requests that may go have changed. Called by
  // any thread without the lock. It must only post.
  virtual void ask_again() = 0;
  // The same for all threads that keep requests or numbers of virtual PFSes.
  virtual void ask_all_again() { ask_again(); }
  // Callers that keep numbers of virtual PFSes longer than a call of act() forget them all, except
  // those of their requests. forget_numbers() says that they should, and forgot_numbers() whether
  // all have since. Both are called with the lock held. Then come ask_all_again(), without it, and
  // in time another retire_idle().
  virtual void forget_numbers() {}
  [[nodiscard]] virtual bool forgot_numbers() const { return true; }

  // Writes what the stage has to say. Without the lock.
  static void tell(const std::vector<std::string>& notices);

 private:
  // The stage's time never goes back: callers read the clock before they take the lock.
  [[nodiscard]] TimePoint advance(TimePoint now) { return last_now_ = std::max(last_now_, now); }
  // How many virtual PFSes to handle per lock, if the work grows with their queues.
  [[nodiscard]] std::size_t rows_at_once(TimePoint now);

  std::atomic<bool> bypassed_ = false;  // the stage's, for readers without the lock
  std::atomic<std::uint32_t> recording_ = 0;

  std::mutex cycle_mutex_;  // taken first; one cycle is taken on at a time
  CourteousMutex mutex_;
  // mutex_ guards the state below and every stage::Held in it.
  stage::Stage stage_;
  TimePoint last_now_ = {};
};

}  // namespace vpfs::control
