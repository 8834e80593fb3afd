#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/admin/host_names.h"
#include "control/admin/live_state.h"
#include "control/admin/name_lookups.h"
#include "control/admin/past_clients.h"
#include "control/admin/past_questions.h"
#include "control/admin/recordings.h"
#include "control/admin/rule_administration.h"
#include "control/admin/stage_snapshot.h"
#include "control/gate/stage_gate.h"
#include "control/host/program.h"
#include "control/wire/control.pb.h"
#include "control/wire/owner.h"
#include "control/wire/rights.h"

namespace vpfs::control {

// Carries out what administrators ask a stage: rules, jobs, statistics, identities of clients, and
// so on. It puts a change into force at the stage's gate itself. Belongs to the Host's thread. The
// port has checked the caller's rights; what a caller may see of others' jobs is decided here.
class Administration {
 public:
  using ReadWallClock = RuleAdministration::ReadWallClock;
  using LookUp =
      std::function<void(const WantedNames& names, NameLookups::For what, NameLookups::Done done)>;

  // All outlive it. The gate and the program use live.composed() already.
  struct Parts {
    LiveState& live;
    StageGate& gate;
    Program& program;
    const HostNames& names;
    LookUp look_up;
    const Clock& clock;
    ReadWallClock now;
    HistoryKeeper::Kept history = {};
    std::function<std::uint64_t()> term = {};  // of the last cycle that was applied; null: zero
  };
  explicit Administration(Parts parts);
  Administration(const Administration&) = delete;
  Administration& operator=(const Administration&) = delete;

  void ask(const Envelope& request, const Caller& caller, const Answer& answer);
  // For a scrape of metrics: everything, with rules.
  [[nodiscard]] StatsReply stats();
  // Ends rules, jobs, confirmations and a bypass whose time is over, and writes the history. Call
  // it before the first request, and then once a second.
  void tick();
  // The program ends: writes what is left of the history. Nothing else changes.
  void finish();
  // After finish(): the history as a record (restore_history()).
  [[nodiscard]] std::string history() const;

 private:
  template <typename Reply>
  using Outcome = RuleAdministration::Outcome<Reply>;

  [[nodiscard]] Outcome<Ack> site(const Site& request, const Caller& caller, ReadRequest& read);
  [[nodiscard]] stage::BookOperation operation_of(const Site& request, const Caller& caller) const;
  [[nodiscard]] WantedNames names_of_site(const Site& request, const Caller& caller,
                                          ReadRequest& read) const;
  void warn_of_site(Ack& reply) const;
  // Notes that a site has come. An error: it is of a former leader.
  [[nodiscard]] std::expected<void, Error> site_arrived(const Site& request);
  // Why a site whose names were looked up meanwhile must not be taken any more.
  [[nodiscard]] std::optional<Error> why_outdated(const Site& request, std::uint64_t number) const;
  [[nodiscard]] std::optional<Error> why_outdated(const Site& request) const;
  [[nodiscard]] Outcome<Ack> bypass(const Bypass& request, const Caller& caller);
  [[nodiscard]] StatsReply stats_of(const Stats& request, const Caller& caller);
  // Those of the caller's own jobs alone.
  [[nodiscard]] StatsReply own_stats(const Caller& caller);
  void why(const Why& request, const Caller& caller, const Answer& answer);
  void own_why(const Why& request, const Caller& caller, const Answer& answer);
  void past(const Past& request, const Caller& caller, const Answer& answer);
  // In which virtual PFSes a client or user is now, or was in that time.
  using FoundNames = std::function<void(const std::set<std::string, std::less<>>& names)>;
  void find_virtual_pfs(const std::string& who, WallTime from, WallTime to, FoundNames found);
  // Notes which clients are there, for questions of later.
  void note_clients();
  [[nodiscard]] Outcome<PastReply> own_past(const Past& request, const Caller& caller);
  [[nodiscard]] Outcome<LedgerReply> ledger(const Ledger& request, const Caller& caller);

  void answer(const Envelope& request, const Caller& caller, const Answer& answer,
              ReadRequest& read);
  [[nodiscard]] Outcome<RuleReply> rule(const Rule& request, const Caller& caller,
                                        ReadRequest& read);
  // The names that carrying the request out will look up. As RuleAdministration::names_of().
  [[nodiscard]] WantedNames names_of(const Envelope& request, const Caller& caller,
                                     ReadRequest& read) const;
  // Those that finding this user or client will look up.
  [[nodiscard]] WantedNames names_asked(const std::string& who) const;
  [[nodiscard]] StageSnapshot snapshot() { return reader_.read(gate_, clock_.now()); }
  // Puts what the book has now into force, if it has changed.
  void put_into_force();
  void write_history();
  // Has the names of live rules looked up that are not in force.
  void look_at_suspended();
  void read_live_rules_again();
  // Writes the journal if it lacks something, and there was time since the last try.
  void keep_book();
  // The reply to what may have changed the book. The change is in force before the answer goes out.
  template <typename Reply>
  [[nodiscard]] Outcome<Reply> in_force(Outcome<Reply> reply) {
    put_into_force();
    return reply;
  }

  LiveState& live_;
  StageGate& gate_;
  Program& program_;
  const HostNames& names_;
  const LookUp look_up_;
  const Clock& clock_;
  const ReadWallClock now_;
  const std::function<std::uint64_t()> term_;
  std::uint64_t site_term_ = 0;  // of the last site that has come
  std::uint64_t last_site_ = 0;  // the number of that site
  SnapshotReader reader_;
  RuleAdministration rules_;
  PastQuestions past_;
  Recordings recordings_;
  // Callers that see only own jobs share one report a second, since any user may be one.
  StageSnapshot seen_by_others_;
  WallTime seen_at_ = {};
  std::vector<Client> clients_of_others_;
  WallTime listed_at_ = {};
  PastClients past_clients_;
  TimePoint noted_at_ = {};  // in past_clients_
  bool bypassed_ = false;
  TimePoint keep_again_at_ = {};  // the journal
  TimePoint look_again_at_ = {};  // at names of live rules
};

}  // namespace vpfs::control
