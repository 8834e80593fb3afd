#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/saved/saved_state.h"
#include "schedulers/cost_model.h"
#include "schedulers/request_list.h"
#include "stage/allocations.h"
#include "stage/client_limits.h"
#include "stage/config/config.h"
#include "stage/held.h"
#include "stage/history_reading.h"
#include "stage/lanes.h"
#include "stage/recorder/recorded.h"
#include "stage/recorder/recorder.h"
#include "stage/rule_rows.h"
#include "stage/rules/classifier.h"
#include "stage/shadow_limits.h"
#include "stage/share_watch.h"
#include "stage/virtual_pfs.h"

namespace vpfs::stage {

// A copy of one virtual PFS's counters.
struct CounterRow {
  VirtualPfsId id;
  bool is_there = false;  // if not, the number is free and the rest means nothing
  // A coordinator's limit is lower than one of its own, so that may be what holds it.
  bool is_capped = false;
  std::uint8_t weights = 0;  // another number: its share has another weight
  Counters counters;
  ShareWatch::Verdict share;
};

// What became of a coordinator's cycle, and its allocations to virtual PFSes that are not there.
struct CycleAnswer {
  CycleResult result = CycleResult::applied;
  std::vector<VirtualPfsId> unknown = {};
};

// A place that enforces shares, whatever its I/O: the virtual PFSes, the schedulers of one data
// server, and the counters of all requests.
//
//   find() ── whose a request is
//   arrive() ──> queued ──release()──> released ──took_over()──> outstanding ──end()
//      │           │ take_back(), refuse()                            │ give_up_slot(), abandon()
//
// A data structure: it owns no thread, takes no lock, reads no clock and writes no log. `now` never
// goes back from one call to the next. Requests are borrowed from their owner. The stage has a
// request from arrive() or park() until end(), refuse() or abandon(), or until release() returns it
// as excess.
class Stage {
 public:
  // REQUIRES: config.policy is one of config.policies, which outlive the stage. The same of
  // reconfigure().
  Stage(const Config& config, TimePoint now);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Takes on a new configuration. If the policy or its settings change, waiting requests move into
  // new schedulers in the order of their arrival, and requests at the data server count against the
  // new depth. `scheduler_per_target` does not change.
  void reconfigure(const Config& config, TimePoint now);

  // Where a request belongs. Neither the virtual PFS nor the row of a shadow rule is retired before
  // all callers have forgotten their numbers (see find_idle()). `rules` are those that `match` was
  // found with, which may be older than the stage's: rules count by their names. Without `rules`
  // only "default" counts.
  [[nodiscard]] Place find(const Classifier::Match& match, TimePoint now,
                           std::span<const RuleConfig> rules = {});

  // The request has come, or was taken back, and its owner keeps it back for now, because that
  // client keeps the data server waiting.
  void park(Held& io, SlowClient whose, TimePoint now);
  // Since when the virtual PFS has had requests that are parked because a client is slow, and
  // whether some of them wait for their own. Nothing: it has none.
  struct ClientWait {
    TimePoint since;
    bool for_its_own;
  };
  [[nodiscard]] std::optional<ClientWait> waits_for_client(AppId app) const;
  // REQUIRES: it is not queued, released or outstanding, and its description is set: its place,
  // kind, size (or asked, with size_is_estimated), cost, arrival, and so on.
  void arrive(Held& io, TimePoint now);

  // The request has arrived at the stage's predecessor, which has counted it, and arrives here
  // next, or is parked. REQUIRES: as arrive().
  void readmit(Held& io, TimePoint now);

  // Appends the requests that may go to the data server now (State::released) and those to refuse
  // because their client has too many (State::excess). Returns when to ask again if nothing happens
  // before.
  [[nodiscard]] TimePoint release(TimePoint now, std::vector<Held*>& let_go);
  // Its owner forwards a released request now, or refuses it.
  static void took_over(Held& io) {
    if (io.state == Held::State::released) io.state = Held::State::outstanding;
  }

  struct Ended {
    Bytes moved;
    bool failed = false;
    // Released, but refused instead of forwarded: only its slot comes back.
    bool refused = false;
  };
  // The end of an outstanding request, or of one that had given its slot up.
  void end(Held& io, const Ended& how, TimePoint now);
  // Such a request has moved so many bytes by now. It is charged for them if they are more than it
  // was charged for.
  void has_moved(Held& io, Bytes moved, TimePoint now);
  // A queued request leaves with the next release(), whatever shares, limits, classes and depth
  // say. It takes no slot, but its virtual PFS owes the tokens and the service that it would have
  // been charged, which delays its next ones. Does nothing if the request leaves anyway.
  void let_pass(Held& io, TimePoint now);
  // Takes a held request out of the scheduler, to arrive again or be refused. False: it was
  // released already.
  [[nodiscard]] bool take_back(Held& io, TimePoint now);
  // The same for a request that was held up to its deadline and does not return.
  [[nodiscard]] bool refuse(Held& io, TimePoint now);
  // Counts a request that was refused before it arrived.
  void count_refused(const Place& place, IoKind kind, Bytes size, TimePoint now);
  // Gives the slot of an outstanding request back before its end is seen. The request is charged
  // for its size; its end corrects that if it was an estimate. False: it has none, or it was given
  // back already.
  [[nodiscard]] bool give_up_slot(Held& io, TimePoint now);
  // Whose requests wait for slots of an outstanding request's lane: none while the depth has room.
  struct Contenders {
    bool others = false;  // of other virtual PFSes
    std::size_t own = 0;  // requests of its own
    // The oldest of its own; nothing if a policy would have to search.
    const Held* oldest_own = nullptr;
  };
  [[nodiscard]] Contenders contenders(const Held& io) const;
  // Removes a request that its client gave up, in any state. An outstanding one, or one that had
  // given its slot up, is charged in full, as for all that it asks for if its size is an estimate:
  // the server may have worked on it. `moved` bytes were seen.
  void abandon(Held& io, TimePoint now, Bytes moved = {});
  // The same of one that its owner has not begun to send. It is charged as one without bytes.
  void withdraw(Held& io, TimePoint now);

  // Other data servers served the virtual PFS this cost in the last `period`. It counts once for
  // all lanes and traffic classes. Does nothing for a retired one.
  void served_elsewhere(VirtualPfsId id, Cost cost, Duration delay, TimePoint now);

  // While bypass is on, every request leaves with the next release(), in the order of arrival,
  // whatever depth, shares, limits, classes and client limits say, as exempt requests always do:
  // those that are queued when it begins and those that arrive until it ends. They are counted, but
  // take no slot and no tokens. Takes O(n log n) for n queued requests.
  void bypass(bool on, TimePoint now);
  [[nodiscard]] bool bypassed() const { return bypass_; }

  // Takes on what a coordinator allows (see Allocations). Virtual PFSes that were removed or
  // retired have no limits any more. release() ends the lease, so it ends when nothing else
  // happens. If a new policy cannot enforce the limits, they are lifted.
  CycleAnswer allocate(const Cycle& cycle, std::span<const Allocation> allocations, TimePoint now);
  // The same in parts, so that no thread waits long for the owner's lock: begin_cycle() with all
  // allocations, which looks only at what they ask for; if it is applied, allocate_some() for all
  // of them; then, for a complete cycle, lift_unmentioned() for all rows, in turn, which returns
  // the next one. No part of another cycle may come between. Parts of a cycle whose lease has ended
  // do nothing. A cycle without a lease ends the one in force: the fallback holds.
  [[nodiscard]] CycleResult begin_cycle(const Cycle& cycle, std::span<const Allocation> allocations,
                                        TimePoint now);
  void allocate_some(Epoch epoch, std::span<const Allocation> some, TimePoint now,
                     std::vector<VirtualPfsId>& unknown);
  std::size_t lift_unmentioned(Epoch epoch, std::size_t first, std::size_t most, TimePoint now);
  // Another number: reconfigure() has made new schedulers.
  [[nodiscard]] std::uint32_t schedulers() const { return schedulers_; }
  [[nodiscard]] const Allocations& allocations() const { return allocations_; }
  // Whether one policy that shares by weight divides the whole server.
  [[nodiscard]] bool divides_by_weight(TimePoint now) const;

  // How long requests may be held; RateLimits::kHold until then. No request waits for a
  // coordinator's limit for more than half of it. Returns whether it changed: then release() may
  // let requests go.
  bool set_hold(Duration hold, TimePoint now);

  // As ClientLimits has them.
  [[nodiscard]] ClientId join_client(const std::string& name) { return clients_.join(name); }
  void leave_client(ClientId client) { clients_.leave(client); }

  // Retiring. find_idle() checks the next `rows` virtual PFSes in turn, and as many rows of shadow
  // rules; those unused for Config::idle then wait for retire(). retire() is called when all
  // callers have forgotten the numbers from before find_idle(). Those that are used meanwhile stay.
  void find_idle(std::size_t rows, TimePoint now);
  [[nodiscard]] bool has_idle() const { return !idle_.empty() || shadows_.has_idle(); }
  // Frees at most `most` of their numbers.
  void retire(std::size_t most, TimePoint now);

  // Every request that ends from now on is written to the recorder, which outlives that; null: to
  // none.
  void record(Recorder* recorder) { recorder_ = recorder; }
  [[nodiscard]] Recorder* recorder() const { return recorder_; }

  // Queues of each virtual PFS, one for each lane and traffic class. The cost of copying a row
  // grows with it.
  [[nodiscard]] std::size_t queues_of_each() const;
  // Rows that copy_counters() knows. Free numbers count.
  [[nodiscard]] std::size_t rows() const { return table_.size(); }
  // Copies the rows from `first` on, as many as there are; returns how many. Shares are judged
  // here, over the time since they were last, so it is not a const method.
  std::size_t copy_counters(std::size_t first, std::span<CounterRow> copies, TimePoint now);
  // Appends what a history needs of those of `count` rows from `first` on that have requests, or
  // had one since `since`. For one reader: the longest waits begin anew.
  void read_history(std::size_t first, std::size_t count, TimePoint since, TimePoint now,
                    std::vector<HistoryReading>& to);

  [[nodiscard]] const VirtualPfsTable& virtual_pfs() const { return table_; }
  [[nodiscard]] const RuleRows& rules() const { return rules_; }
  [[nodiscard]] const ShadowLimits& shadows() const { return shadows_; }
  // Not const: schedulers bring themselves up to date when queried.
  [[nodiscard]] Lanes& lanes() { return lanes_; }
  [[nodiscard]] const ClientLimits& clients() const { return clients_; }
  // In all lanes, and unscheduled ones.
  [[nodiscard]] std::size_t outstanding() const;
  [[nodiscard]] std::size_t queued() const;
  // Unscheduled requests at the data server.
  [[nodiscard]] std::size_t unscheduled() const { return unscheduled_outstanding_; }

  // For a successor in another process, whose rows have other numbers: names count. save(): all
  // counters, what coordinators allow, and the schedulers. The successor takes the first two on
  // with restore(), before any request; then its requests arrive again (readmit()), and then it
  // takes on the schedulers with restore_schedulers(). `save_changes()`: what was counted, and what
  // has come back from the data server, since it was called last, or save() was; nothing: nothing.
  [[nodiscard]] SavedState save(TimePoint now);
  [[nodiscard]] std::optional<SavedState> save_changes(TimePoint now);
  void restore(const SavedState& from, TimePoint now);
  void restore_schedulers(const SavedState& from, TimePoint now);
  void take_changes(const SavedState& from, TimePoint now);
  // Requests that the predecessor still has at the data server are not waited for any more.
  void vacate_predecessor();

  // Log lines for the administrator, each once.
  [[nodiscard]] std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }

 private:
  VirtualPfs& enter(Held& io, TimePoint now);
  // Requests of a virtual PFS that are parked because a client is slow.
  struct WaitForClients {
    std::size_t requests = 0;
    std::size_t for_their_own = 0;  // of them
    TimePoint since = {};
  };
  // The request no longer waits because of a client, if it did.
  void stop_waiting_for_client(Held& io, TimePoint now);
  void leave(Held& io, TimePoint now);
  [[nodiscard]] std::size_t lane_of(const Held& io, TimePoint now);
  [[nodiscard]] Scheduler& scheduler_of(const Held& io) { return *lanes_[io.lane].scheduler; }
  void queue_unscheduled(Held& io);
  void release_unscheduled(TimePoint now, std::vector<Held*>& let_go);
  // Counts a request that goes to the data server now.
  void dispatch(Held& io, TimePoint now, std::vector<Held*>& let_go);
  void leave_queue(Held& io, TimePoint now);
  void complete(Held& io, Cost cost, TimePoint now);
  void remove(Held& io, Cost cost, TimePoint now);
  void charge_up_to(Held& io, Bytes moved, TimePoint now);
  // For the recorder, if there is one.
  void note_wait(Held& io, TimePoint now);
  [[nodiscard]] RecordedReason reason_so_far(const Held& io, TimePoint now);
  void note_end(const Held& io, RecordedEnd how, Bytes moved, TimePoint now);
  void set_shares(const std::vector<AppId>& apps, TimePoint now);
  void set_shares(Lanes::Lane& lane, const std::vector<AppId>& apps, TimePoint now);
  // Tells a new scheduler all virtual PFSes.
  void introduce_everybody(Lanes::Lane& lane, TimePoint now);
  void replace(Lanes::Lane& lane, TimePoint now);
  [[nodiscard]] TimePoint release(Lanes::Lane& lane, TimePoint now, std::vector<Held*>& let_go);
  // Whether there were any.
  [[nodiscard]] bool refuse_excess(TimePoint now, std::vector<Held*>& let_go);
  [[nodiscard]] bool is_idle(AppId app, TimePoint now) const;
  void retire(AppId app, TimePoint now);
  void end_lease_if_due(TimePoint now) {
    if (now < allocations_.lease_end()) return;
    allocations_.count_lease_end();
    end_lease("the coordinator was not heard of for its lease", now);
  }
  void end_lease(std::string_view why, TimePoint now);
  void fall_back(TimePoint now);
  void use_fallback(const Fallback& fallback, TimePoint now);
  void lift_unsupported(TimePoint now);
  void prefetch_rows(AppId app);
  void prefetch_head(AppId app);
  // Tells the schedulers a coordinator's limits of one virtual PFS, or of all that have any.
  void limit(AppId app, const Limits& limits, TimePoint now);
  void limit_all(const Limits& limits, TimePoint now);
  // Adds the scheduler's hold times to the counters before it forgets them.
  void keep_hold_times(Lanes::Lane& lane, AppId app, TimePoint now);
  [[nodiscard]] ShareWatch::Verdict judge_share(AppId app, TimePoint now);
  [[nodiscard]] HistoryReading read_history(AppId app, TimePoint now);
  [[nodiscard]] Counters counters_now(AppId app, TimePoint now) const;
  void save_lane(std::size_t lane, TimePoint now, SavedState& to);
  [[nodiscard]] std::optional<std::size_t> lane_of_saved(const SavedState& from, TimePoint now);

  CostModel cost_model_;
  Duration idle_for_;
  VirtualPfsTable table_;
  RuleRows rules_;
  ShadowLimits shadows_;
  Lanes lanes_;
  bool uses_nodes_;  // the policy knows the word "nodes"
  ClientLimits clients_;
  bool bypass_ = false;
  RequestList unscheduled_;  // queued ones, until the next release()
  std::uint64_t unscheduled_order_ = 0;
  std::size_t unscheduled_queued_ = 0;
  std::size_t unscheduled_outstanding_ = 0;
  std::unordered_map<AppId, WaitForClients> slow_clients_;  // of those that have such requests
  ShareWatch shares_;
  Allocations allocations_;
  Fallback fallback_;
  std::optional<Duration> longest_delay_;
  Duration hold_ = RateLimits::kHold;
  TimePoint quiet_until_ = TimePoint::min();  // no further notice of a lease that ended
  std::uint32_t schedulers_ = 0;              // generation of the schedulers
  std::vector<AppId> idle_;                   // waiting for retire()
  std::size_t next_row_ = 0;                  // of find_idle()
  Recorder* recorder_ = nullptr;
  // At the last save(), by number.
  std::vector<Counters> saved_counters_;
  std::vector<DepthGate::Load> saved_loads_;  // by lane
  // What the predecessor has at the data server, by lane.
  std::vector<DepthGate::Load> predecessor_loads_;
  std::vector<std::string> notices_;
};

}  // namespace vpfs::stage
