#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "schedulers/cost_model.h"
#include "stage/classifier.h"
#include "stage/client_limits.h"
#include "stage/config.h"
#include "stage/held.h"
#include "stage/lanes.h"
#include "stage/virtual_pfs.h"

namespace vpfs::stage {

// A copy of what is counted of one virtual PFS.
struct CounterRow {
  VirtualPfsId id;
  bool is_there = false;  // if not, the number is free and the rest means nothing
  Counters counters;
};

// A place where shares are enforced, whatever its I/O is: the virtual PFSes, the schedulers of one
// data server, and the books of all that passes.
//
//   find() ── whose a request is
//   arrive() ──> queued ──release()──> released ──took_over()──> outstanding ──end()
//      │           │ take_back(), refuse()                            │ give_up_slot(), abandon()
//
// A data structure: it owns no thread, takes no lock, reads no clock and writes no log. `now` never
// goes back from one call to the next. Requests are borrowed from their owner: each one that was
// given to arrive() or park() is the stage's until end(), refuse() or abandon(), or until
// release() gave it back as excess.
class Stage {
 public:
  // REQUIRES: config.policy is one of config.policies, which outlive the stage. The same of
  // reconfigure().
  Stage(const Config& config, TimePoint now);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // What a reload changes. With another policy, or other settings of it, requests that wait move
  // into new schedulers in the order of their arrival, and what is at the data server counts
  // against their depth. `scheduler_per_target` stays as it was.
  void reconfigure(const Config& config, TimePoint now);

  // The virtual PFS that a rule names. It is not retired before its number was forgotten by all who
  // got it here (see find_idle()).
  [[nodiscard]] VirtualPfsId find(const Classifier::Match& match, TimePoint now);

  // The request is here, but its owner keeps it back for the time being. Nothing when it is known.
  void park(Held& io, TimePoint now);
  // REQUIRES: it is not queued, released or outstanding; what describes it is set: app, generation,
  // kind, size (or asked, with size_is_estimated), cost, arrival, and so on.
  void arrive(Held& io, TimePoint now);

  // Appends what may go to the data server now (State::released), and what is to be refused because
  // its client has too many (State::excess). Returns when to ask again if nothing happens before.
  [[nodiscard]] TimePoint release(TimePoint now, std::vector<Held*>& let_go);
  // Its owner forwards a released request now, or refuses it.
  static void took_over(Held& io) {
    if (io.state == Held::State::released) io.state = Held::State::outstanding;
  }

  struct Ended {
    Bytes moved;
    bool failed = false;
    // Let go, but refused instead of forwarded: only its slot comes back.
    bool refused = false;
  };
  // Of an outstanding request, or one that had given its slot up.
  void end(Held& io, const Ended& how, TimePoint now);
  // Takes a held request out of the scheduler, to be given again or refused; false when it is there
  // no more, because it was let go already.
  [[nodiscard]] bool take_back(Held& io, TimePoint now);
  // The same, for good: it was held up to its deadline.
  [[nodiscard]] bool refuse(Held& io, TimePoint now);
  // Counts a request that was refused before it was here.
  void count_refused(VirtualPfsId id, IoKind kind, Bytes size);
  // Gives the slot of an outstanding request back, charged in full, though its end was not seen.
  // False when it has been given back already.
  [[nodiscard]] bool give_up_slot(Held& io, TimePoint now);
  // Takes a request out that its client gave up on, in whatever state. An outstanding one is
  // charged in full: the server may have worked on it.
  void abandon(Held& io, TimePoint now);

  // Cost that the virtual PFS was served by other data servers in the last `period`; it counts once
  // for all lanes and traffic classes. Nothing if it is retired.
  void served_elsewhere(VirtualPfsId id, Cost cost, Duration period, TimePoint now);

  // As ClientLimits has them.
  [[nodiscard]] ClientId join_client(const std::string& name) { return clients_.join(name); }
  void leave_client(ClientId client) { clients_.leave(client); }

  // Retiring. find_idle() looks at the next `rows` virtual PFSes (going round) for those that
  // nobody has used for Config::idle: from then on they wait for retire(), which is to be called
  // when nobody knows a number from before find_idle() any more. Who is asked for meanwhile stays.
  void find_idle(std::size_t rows, TimePoint now);
  [[nodiscard]] bool has_idle() const { return !idle_.empty(); }
  // Frees at most `most` of their numbers.
  void retire(std::size_t most, TimePoint now);

  // Queues of each virtual PFS, one for each lane and traffic class: what copying a row grows with.
  [[nodiscard]] std::size_t queues_of_each() const;
  // Rows that copy_counters() knows. Free numbers count.
  [[nodiscard]] std::size_t rows() const { return table_.size(); }
  // Copies the rows from `first` on, as far as there are; says how many.
  std::size_t copy_counters(std::size_t first, std::span<CounterRow> copies, TimePoint now) const;

  [[nodiscard]] const VirtualPfsTable& virtual_pfs() const { return table_; }
  // Not const: schedulers bring themselves up to date when they are asked.
  [[nodiscard]] Lanes& lanes() { return lanes_; }
  [[nodiscard]] const ClientLimits& clients() const { return clients_; }
  [[nodiscard]] std::size_t outstanding() const;
  [[nodiscard]] std::size_t queued() const;

  // What the administrator should know, as lines of a log; each once.
  [[nodiscard]] std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }

 private:
  VirtualPfs& enter(Held& io, TimePoint now);
  void leave(Held& io, TimePoint now);
  [[nodiscard]] std::size_t lane_of(const Held& io, TimePoint now);
  [[nodiscard]] Scheduler& scheduler_of(const Held& io) { return *lanes_[io.lane].scheduler; }
  void leave_queue(Held& io, TimePoint now);
  void complete(Held& io, Cost cost, TimePoint now);
  void give_slot_back(Held& io, TimePoint now);
  void set_shares(const std::vector<AppId>& apps, TimePoint now);
  void set_shares(Lanes::Lane& lane, const std::vector<AppId>& apps, TimePoint now);
  // A new scheduler learns who is there.
  void introduce_everybody(Lanes::Lane& lane, TimePoint now);
  void replace(Lanes::Lane& lane, TimePoint now);
  [[nodiscard]] TimePoint release(Lanes::Lane& lane, TimePoint now, std::vector<Held*>& let_go);
  void refuse_excess(TimePoint now, std::vector<Held*>& let_go);
  [[nodiscard]] bool is_idle(AppId app, TimePoint now) const;
  void retire(AppId app, TimePoint now);
  // What the schedulers know, added to the counters, before they forget it.
  void keep_hold_times(Lanes::Lane& lane, AppId app, TimePoint now);

  CostModel cost_model_;
  Duration idle_for_;
  VirtualPfsTable table_;
  Lanes lanes_;
  ClientLimits clients_;
  std::uint32_t schedulers_ = 0;  // generation of the schedulers
  std::vector<AppId> idle_;       // waiting for retire()
  std::size_t next_row_ = 0;      // of find_idle()
  std::vector<std::string> notices_;
};

}  // namespace vpfs::stage
