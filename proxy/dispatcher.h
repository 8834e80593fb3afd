#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proxy/courteous_mutex.h"
#include "proxy/pending_io.h"
#include "stage/stage.h"

namespace vpfs::proxy {

// What one event on a worker brought for the stage. The worker fills it while it handles the event
// and passes it to Dispatcher::turn() once at the end, so that an event takes the lock once.
struct Turn {
  struct End {
    PendingIo* io;
    std::uint64_t bytes;
    bool failed;
    // The request was released, but refused instead of forwarded. Only its slot is returned.
    bool refused = false;
  };
  std::vector<PendingIo*> parked;  // may be in `arrived` as well
  std::vector<PendingIo*> arrived;
  std::vector<End> ended;
  // The worker has forgotten every virtual PFS number that it learnt before this epoch
  // (Next::epoch).
  std::uint64_t epoch = 0;

  [[nodiscard]] bool empty() const { return parked.empty() && arrived.empty() && ended.empty(); }
  void clear() {
    parked.clear();
    arrived.clear();
    ended.clear();
  }
};

// The stage of the data server, shared by all workers. It adds a lock and an inbox for each worker.
// Any thread may call any method. A released request goes to the worker that owns its session. Log
// lines are written outside the lock.
class Dispatcher {
 public:
  // Called without the lock when another worker has to take its turn. It must only post.
  using WakeUp = std::function<void(std::size_t worker)>;

  Dispatcher(const stage::Config& config, std::size_t workers, WakeUp wake_up, TimePoint now);

  // The methods of stage::Stage, each under the lock.
  [[nodiscard]] stage::Place find(const stage::Classifier::Match& match, TimePoint now,
                                  std::span<const stage::RuleConfig> rules = {});
  void reconfigure(const stage::Config& config, TimePoint now);
  void abandon(PendingIo& io, TimePoint now);
  [[nodiscard]] bool take_back(PendingIo& io, TimePoint now);
  [[nodiscard]] bool refuse(PendingIo& io, TimePoint now);
  [[nodiscard]] bool give_up_slot(PendingIo& io, TimePoint now);
  void count_refused(const stage::Place& place, IoKind kind, Bytes size, TimePoint now);
  [[nodiscard]] stage::ClientId join_client(const std::string& name);
  void leave_client(stage::ClientId client);
  bool set_hold(Duration hold, TimePoint now);
  [[nodiscard]] std::size_t outstanding();
  [[nodiscard]] std::size_t queued();

  // As stage::Stage::bypass(); wakes all workers. Says so in the log.
  void bypass(bool on, TimePoint now);
  // Takes no lock.
  [[nodiscard]] bool bypassed() const { return bypassed_.load(std::memory_order_relaxed); }

  // What a worker needs to know after its turn.
  struct Next {
    std::optional<TimePoint> until;  // take the next turn by then
    // When it changes, the worker forgets all virtual PFS numbers except those of its requests, and
    // takes another turn with the new epoch.
    std::uint64_t epoch = 0;
  };
  // Accounts for the turn. Appends to `released` the requests that `worker` is to forward now,
  // those of its inbox included.
  [[nodiscard]] Next turn(std::size_t worker, const Turn& turn, TimePoint now,
                          std::vector<PendingIo*>& released);

  // Takes on a coordinator's cycle, which came at `now`, one block of virtual PFSes at a time, so
  // that nobody waits long for the lock. Then a worker takes its turn and learns when the lease
  // ends. From then on the lease ends by the workers alone.
  stage::CycleAnswer allocate(const stage::Cycle& cycle,
                              std::span<const stage::Allocation> allocations, TimePoint now);

  // Retires idle virtual PFSes and has the workers forget them. Called from time to time.
  void retire_idle(TimePoint now);

  // Copies all counters, one block of rows at a time, so that nobody waits long for the lock. See
  // stage::Stage::copy_counters() for the rows.
  void copy_counters(TimePoint now, std::vector<stage::CounterRow>& rows);
  // Calls visit(stage, now) with the lock held. The visitor only copies, for a few microseconds at
  // most.
  template <typename Visitor>
  void inspect(TimePoint now, Visitor&& visit) {
    const std::lock_guard lock(mutex_);
    visit(stage_, advance(now));
  }
  // Between two calls of inspect(): those who wait for the lock go first.
  void give_way() { mutex_.give_way(); }

 private:
  void hand_over(stage::Held& held);
  [[nodiscard]] TimePoint advance(TimePoint now);
  // How many virtual PFSes to handle per lock, if the work grows with their queues.
  [[nodiscard]] std::size_t rows_at_once(TimePoint now);
  [[nodiscard]] bool everybody_knows_the_epoch() const;
  static void tell(const std::vector<std::string>& notices);

  const WakeUp wake_up_;
  std::atomic<bool> bypassed_ = false;  // the stage's, for readers without the lock

  std::mutex cycle_mutex_;  // taken first; one cycle is taken on at a time
  CourteousMutex mutex_;
  // mutex_ guards the state below and the stage::Held part of every PendingIo in it.
  stage::Stage stage_;
  TimePoint last_now_ = {};  // workers read the clock before they take the lock
  std::vector<std::vector<PendingIo*>> inboxes_;
  std::vector<std::size_t> to_wake_;
  std::vector<stage::Held*> let_go_;   // used within one turn
  std::vector<std::uint64_t> epochs_;  // of each worker
  std::uint64_t epoch_ = 0;
};

}  // namespace vpfs::proxy
