#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "proxy/pending_io.h"
#include "schedulers/cost_model.h"
#include "schedulers/scheduler.h"
#include "stage/classifier.h"
#include "stage/client_limits.h"
#include "stage/virtual_pfs.h"

namespace vpfs::proxy {

// What one event on a worker brought for the scheduler: filled while the event is handled, given to
// Dispatcher::turn() once at its end, so that the lock is taken once per event.
struct Turn {
  struct End {
    PendingIo* io;
    std::uint64_t bytes;
    bool failed;
    // Let go, but refused instead of forwarded: only its slot comes back.
    bool refused = false;
  };
  std::vector<PendingIo*> arrived;
  std::vector<End> ended;

  [[nodiscard]] bool empty() const { return arrived.empty() && ended.empty(); }
  void clear() {
    arrived.clear();
    ended.clear();
  }
};

// The scheduler of the data server (or one for each of its targets, the lanes) and the books of all
// virtual PFSes, shared by all workers. Every method may be called from any worker's thread.
// Requests that a scheduler lets go are handed to the worker that their session belongs to.
class Dispatcher {
 public:
  using MakeScheduler = std::function<std::unique_ptr<Scheduler>()>;
  // Called without the lock when another worker's inbox stopped being empty; must only post.
  using WakeUp = std::function<void(std::size_t worker)>;

  struct Setup {
    MakeScheduler make_scheduler;
    bool lane_per_target = false;
    CostModel cost_model;
    stage::ClientLimits::Settings client_limits;
  };
  Dispatcher(Setup setup, stage::VirtualPfsTable table, std::size_t workers, WakeUp wake_up,
             TimePoint now);

  [[nodiscard]] AppId app_of(const stage::Classifier::Match& match, TimePoint now);

  // What a reload changes. With a new scheduler, requests that wait move into it in the order of
  // their arrival, and what is at the data server counts against its depth.
  struct Change {
    MakeScheduler make_scheduler;  // nothing: those in force stay
    CostModel cost_model;
    stage::ClientLimits::Settings client_limits;
    const std::vector<stage::VirtualPfsConfig>& virtual_pfs;
    std::size_t most_virtual_pfs;
  };
  void reconfigure(Change change, TimePoint now);

  // Accounts for the turn and appends to `released` what `worker` is to forward now (its inbox
  // included). Returns when to call again if nothing happens before.
  std::optional<TimePoint> turn(std::size_t worker, const Turn& turn, TimePoint now,
                                std::vector<PendingIo*>& released);

  // Takes a request out that its client gave up on: from the scheduler, from the inbox, or from
  // among the outstanding ones (then it is charged in full: the server may have worked on it).
  void abandon(PendingIo& io, TimePoint now);
  // Takes a held request out of the scheduler; false when it is there no more, because it was
  // let go already.
  [[nodiscard]] bool take_back(PendingIo& io, TimePoint now);
  // Gives the slot of an outstanding request back, charged in full, though its end was not seen.
  // False when it has been given back already.
  [[nodiscard]] bool give_up_slot(PendingIo& io, TimePoint now);
  // As ClientLimits has them.
  [[nodiscard]] stage::ClientId join_client(const std::string& name);
  void leave_client(stage::ClientId client);

  // Counts a request that was refused instead of forwarded.
  void count_refused(AppId app);

  // The requests of one target or mirror group (IoDescription::device), or of all.
  struct Lane {
    std::optional<std::uint32_t> target;
    std::unique_ptr<Scheduler> scheduler;
  };
  // For status: calls `visit` with the lock held.
  struct Books {
    stage::VirtualPfsTable& table;
    const std::vector<Lane>& lanes;  // at least one
    const stage::ClientLimits& clients;
    TimePoint now;
  };
  void inspect(TimePoint now, const std::function<void(const Books&)>& visit);
  [[nodiscard]] std::size_t outstanding();
  [[nodiscard]] std::size_t queued();

 private:
  void arrive(PendingIo& io, TimePoint now);
  void end(const Turn::End& end, TimePoint now);
  void give_slot_back(PendingIo& io, TimePoint now);
  void complete(PendingIo& io, Cost cost, TimePoint now);
  void replace(Lane& lane, TimePoint now);
  void set_shares(Lane& lane, const std::vector<AppId>& apps, TimePoint now);
  void set_shares(const std::vector<AppId>& apps, TimePoint now);
  [[nodiscard]] std::size_t reused_lane(std::uint32_t target);
  [[nodiscard]] std::size_t lane_of(const PendingIo& io, TimePoint now);
  [[nodiscard]] Scheduler& scheduler_of(const PendingIo& io) { return *lanes_[io.lane].scheduler; }
  void leave_queue(PendingIo& io, TimePoint now);
  void hand_over(PendingIo& io, PendingIo::State state);
  [[nodiscard]] TimePoint release_all(Lane& lane, TimePoint now);
  void refuse_excess(TimePoint now);
  void tell_excess(const PendingIo& io, TimePoint now);
  [[nodiscard]] TimePoint advance(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> release_all(TimePoint now);

  const WakeUp wake_up_;
  const bool lane_per_target_;

  std::mutex mutex_;
  // State below is guarded by mutex_, as are `state` and `sent` of every PendingIo in here.
  CostModel cost_model_;
  MakeScheduler make_scheduler_;
  std::vector<Lane> lanes_;
  std::uint32_t generation_ = 0;  // of the schedulers
  TimePoint last_now_ = {};       // workers read the clock before they wait for the lock
  stage::VirtualPfsTable table_;
  stage::ClientLimits clients_;
  std::vector<std::vector<PendingIo*>> inboxes_;
  std::vector<std::size_t> to_wake_;
};

}  // namespace vpfs::proxy
