#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "control/gate/stage_gate.h"
#include "proxy/pending_io.h"
#include "proxy/worker_settings.h"
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
  struct Parked {
    PendingIo* io;
    stage::SlowClient whose;  // it is kept back because of that client
  };
  std::vector<PendingIo*> gave_slots_up;  // first; may be in `abandoned` or `ended` as well
  std::vector<PendingIo*> moved;          // next; likewise
  std::vector<PendingIo*> abandoned;
  std::vector<Parked> parked;  // may be in `arrived` as well
  std::vector<PendingIo*> arrived;
  std::vector<End> ended;
  // The worker has forgotten every virtual PFS number that it learnt before this epoch
  // (Next::epoch).
  std::uint64_t epoch = 0;

  [[nodiscard]] bool empty() const {
    return gave_slots_up.empty() && moved.empty() && abandoned.empty() && parked.empty() &&
           arrived.empty() && ended.empty();
  }
  void clear() {
    gave_slots_up.clear();
    moved.clear();
    abandoned.clear();
    parked.clear();
    arrived.clear();
    ended.clear();
  }
};

// The stage of the data server, shared by all workers. It adds an inbox for each worker, and the
// settings that they all use. Any thread may call any method. A released request goes to the worker
// that owns its session.
class Dispatcher final : public control::StageGate {
 public:
  // Called without the lock when another worker has to take its turn. It must only post.
  using WakeUp = std::function<void(std::size_t worker)>;

  Dispatcher(WorkerSettingsPtr settings, std::size_t workers, WakeUp wake_up, TimePoint now);

  // Puts a configuration into force. Each worker gets the settings with its next turn.
  void use(Config config, TimePoint now);
  // The same with another part of the stage alone.
  void reconfigure(const stage::Config& config, TimePoint now) override;
  // Those in force. For the thread that changes them.
  [[nodiscard]] const WorkerSettingsPtr& settings() const { return settings_; }

  // While it is frozen, nothing is released.
  void freeze(bool on);
  // As stage::Stage::readmit().
  void readmit(PendingIo& io, TimePoint now);
  // Requests that were readmitted arrive, in this order.
  void arrive(const std::vector<PendingIo*>& ios, TimePoint now);

  // As stage::Stage::abandon(), for all of them under one lock. PendingIo::moved is up to date.
  void abandon(const std::vector<PendingIo*>& ios, TimePoint now);
  // As stage::Stage::take_back(), likewise. Returns those that were taken back.
  [[nodiscard]] std::vector<PendingIo*> take_back(std::vector<PendingIo*> ios, TimePoint now);

  // Whether a request of another virtual PFS, or of another client's address, waits for the slots
  // among which one of `ios` has or had one. They are of one client. `any_client`: one of its own
  // virtual PFS and address as well.
  [[nodiscard]] bool others_wait(const std::vector<PendingIo*>& ios, bool any_client,
                                 TimePoint now);

  [[nodiscard]] std::size_t workers() const { return inboxes_.size(); }

  // What a worker needs to know after its turn.
  struct Next {
    std::optional<TimePoint> until;  // take the next turn by then
    // When it changes, the worker forgets all virtual PFS numbers except those of its requests, and
    // takes another turn with the new epoch.
    std::uint64_t epoch = 0;
    std::size_t slots_given_up = 0;
    WorkerSettingsPtr settings;  // in force; null: the epoch is the same, and so are they
  };
  // Accounts for the turn. Appends to `released` the requests that `worker` is to forward now,
  // those of its inbox included.
  [[nodiscard]] Next turn(std::size_t worker, const Turn& turn, TimePoint now,
                          std::vector<PendingIo*>& released);

 private:
  // Some worker has to ask the scheduler what may go now.
  void ask_again() override { wake_up_(0); }
  void ask_all_again() override;
  void forget_numbers() override { ++epoch_; }
  [[nodiscard]] bool forgot_numbers() const override;
  void hand_over(stage::Held& held);
  void abandon(stage::Stage& stage, PendingIo& io, TimePoint now);

  const WakeUp wake_up_;
  WorkerSettingsPtr
      settings_before_;  // freed by the thread that changes them, so that no worker stalls
  // The gate's lock guards what follows, and the stage::Held part of every PendingIo in it.
  std::vector<std::vector<PendingIo*>> inboxes_;
  std::vector<std::size_t> to_wake_;
  std::vector<stage::Held*> let_go_;   // used within one turn
  std::vector<std::uint64_t> epochs_;  // of each worker
  std::uint64_t epoch_ = 0;
  bool frozen_ = false;
  WorkerSettingsPtr settings_;
};

}  // namespace vpfs::proxy
