#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proxy/pending_io.h"
#include "stage/stage.h"

namespace vpfs::proxy {

// What one event on a worker brought for the stage: filled while the event is handled, given to
// Dispatcher::turn() once at its end, so that the lock is taken once per event.
struct Turn {
  struct End {
    PendingIo* io;
    std::uint64_t bytes;
    bool failed;
    // Let go, but refused instead of forwarded: only its slot comes back.
    bool refused = false;
  };
  std::vector<PendingIo*> parked;  // and perhaps arrived since
  std::vector<PendingIo*> arrived;
  std::vector<End> ended;
  // The worker uses no number of a virtual PFS that it learnt before this epoch (Next::epoch).
  std::uint64_t epoch = 0;

  [[nodiscard]] bool empty() const { return parked.empty() && arrived.empty() && ended.empty(); }
  void clear() {
    parked.clear();
    arrived.clear();
    ended.clear();
  }
};

// The stage of the data server, shared by all workers: the lock around it, and an inbox for each
// worker. Every method may be called from any worker's thread. Requests that the stage lets go are
// handed to the worker that their session belongs to. The log is written without the lock.
class Dispatcher {
 public:
  // Called without the lock when another worker has to take its turn; must only post.
  using WakeUp = std::function<void(std::size_t worker)>;

  Dispatcher(const stage::Config& config, std::size_t workers, WakeUp wake_up, TimePoint now);

  // The methods of stage::Stage, each under the lock.
  [[nodiscard]] stage::VirtualPfsId find(const stage::Classifier::Match& match, TimePoint now);
  void reconfigure(const stage::Config& config, TimePoint now);
  void abandon(PendingIo& io, TimePoint now);
  [[nodiscard]] bool take_back(PendingIo& io, TimePoint now);
  [[nodiscard]] bool refuse(PendingIo& io, TimePoint now);
  [[nodiscard]] bool give_up_slot(PendingIo& io, TimePoint now);
  void count_refused(stage::VirtualPfsId id, IoKind kind, Bytes size);
  [[nodiscard]] stage::ClientId join_client(const std::string& name);
  void leave_client(stage::ClientId client);
  [[nodiscard]] std::size_t outstanding();
  [[nodiscard]] std::size_t queued();

  // What a worker has to know after its turn.
  struct Next {
    std::optional<TimePoint> until;  // when to take a turn again if nothing happens before
    // When it changes, the worker forgets all numbers of virtual PFSes that it knows, but those of
    // its requests, and takes another turn with it.
    std::uint64_t epoch = 0;
  };
  // Accounts for the turn and appends to `released` what `worker` is to forward now (its inbox
  // included).
  [[nodiscard]] Next turn(std::size_t worker, const Turn& turn, TimePoint now,
                          std::vector<PendingIo*>& released);

  // Looks for virtual PFSes that are idle, and has the workers forget them. To be called from time
  // to time.
  void retire_idle(TimePoint now);

  // Copies all counters, a block of rows at a time, so that nobody waits long for the lock. Rows
  // are those of stage::Stage::copy_counters().
  void copy_counters(TimePoint now, std::vector<stage::CounterRow>& rows);
  // Calls visit(stage, now) with the lock held: it copies what it needs, and no more than
  // takes some microseconds.
  template <typename Visitor>
  void inspect(TimePoint now, Visitor&& visit) {
    const std::lock_guard lock(mutex_);
    visit(stage_, advance(now));
  }

 private:
  void hand_over(stage::Held& held);
  [[nodiscard]] TimePoint advance(TimePoint now);
  [[nodiscard]] bool everybody_knows_the_epoch() const;
  static void tell(const std::vector<std::string>& notices);

  const WakeUp wake_up_;

  std::mutex mutex_;
  // State below is guarded by mutex_, as is what is stage::Held's of every PendingIo in here.
  stage::Stage stage_;
  TimePoint last_now_ = {};  // workers read the clock before they wait for the lock
  std::vector<std::vector<PendingIo*>> inboxes_;
  std::vector<std::size_t> to_wake_;
  std::vector<stage::Held*> let_go_;   // only used within one turn
  std::vector<std::uint64_t> epochs_;  // of each worker
  std::uint64_t epoch_ = 0;
};

}  // namespace vpfs::proxy
