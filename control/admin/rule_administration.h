#pragma once

#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/admin/host_names.h"
#include "control/admin/live_state.h"
#include "control/admin/stage_snapshot.h"
#include "control/wire/control.pb.h"
#include "control/wire/owner.h"
#include "control/wire/rights.h"

namespace vpfs::control {

// What the rules of one request were read as. names_of() may have read them for rule() already.
struct ReadRequest {
  stage::ParsedRules rules;
  std::optional<Error> mistake;         // why it cannot be carried out
  std::optional<stage::Change> change;  // what carrying it out does to the book as it was then
};

// Carries out what administrators ask about rules and jobs, of a stage or of a whole site. Belongs
// to its owner's thread. The port has checked the caller's rights; what a caller may see of others'
// jobs is decided here.
class RuleAdministration {
 public:
  using ReadWallClock = WallTime (*)();
  template <typename Reply>
  using Outcome = std::expected<Reply, Error>;

  // Both outlive it. `names` are those of live.file(), if it has any.
  RuleAdministration(LiveState& live, const HostNames& names, ReadWallClock now)
      : live_(live), names_(names), now_(now) {}

  // Whether the book has changed since the last call. Then live.composed() is to be put into force.
  [[nodiscard]] bool take_change() { return std::exchange(changed_, false); }

  // `read`: what names_of() has read for this request.
  [[nodiscard]] Outcome<RuleReply> rule(const Rule& request, const Caller& caller,
                                        ReadRequest& read);
  // With what a stage has counted of them.
  [[nodiscard]] RuleReply list_rules(const std::vector<StageSnapshot::Rule>& counted) const;
  [[nodiscard]] Outcome<JobReply> job(const Job& request, const Caller& caller);
  [[nodiscard]] JobReply list_jobs(const Caller& caller);
  // The names that have to be looked up before the request can be carried out, and of one job or
  // rule those that are kept, too: they may mean something else by now. If there are none, `read`
  // gets what was read and prepared for that, so that rule() does neither again.
  [[nodiscard]] WantedNames names_of(const Envelope& request, const Caller& caller,
                                     ReadRequest& read) const;
  // Carries an operation out.
  [[nodiscard]] Outcome<stage::Change> carry_out(stage::BookOperation operation);
  // The same, once it is prepared.
  [[nodiscard]] Outcome<void> carry_out(const stage::Change& change,
                                        const stage::ParsedRules* read = nullptr);
  // Ends rules, jobs and confirmations whose time is over. Returns whether there were any.
  bool tick();

  // For an owner that keeps the records by itself, which may take a while.
  //
  // Whether the request changes the book if it is carried out; a dry run does not.
  [[nodiscard]] static bool changes_book(const Envelope& request);
  // What the request does. REQUIRES: changes_book().
  [[nodiscard]] Outcome<stage::Change> prepare(const Envelope& request, const Caller& caller,
                                               ReadRequest& read) const;
  // Carries out what was prepared; the reply. REQUIRES: as LiveState::commit().
  [[nodiscard]] Envelope commit(const Envelope& request, const stage::Change& change,
                                const ReadRequest& read);
  // The same of what was due.
  void commit(const stage::BookOperation& due);

 private:
  [[nodiscard]] RuleReply history() const;
  [[nodiscard]] Outcome<RuleReply> change_rules(const Rule& request, const Caller& caller,
                                                ReadRequest& read);
  [[nodiscard]] Outcome<JobReply> change_jobs(const Job& request, const Caller& caller);
  // What the request does. Takes it from `read` if it is there.
  [[nodiscard]] Outcome<stage::Change> prepared(const Rule& request, const Caller& caller,
                                                ReadRequest& read) const;
  [[nodiscard]] Outcome<stage::BookOperation> operation_of(const Rule& request,
                                                           const Caller& caller,
                                                           stage::ParsedRules& read) const;
  [[nodiscard]] Outcome<stage::BookOperation> operation_of(const Job& request,
                                                           const Caller& caller) const;
  [[nodiscard]] Outcome<stage::Change> prepare_rule(const Rule& request, const Caller& caller,
                                                    stage::ParsedRules& read) const;
  [[nodiscard]] RuleReply dry_reply(const stage::Change& change) const;
  // What to answer once a change is carried out.
  [[nodiscard]] RuleReply reply_of(const Rule& request, const stage::Change& change) const;
  [[nodiscard]] static JobReply reply_of(const Job& request, const stage::Change& change,
                                         bool was_known);
  [[nodiscard]] bool knows_job(const Job& request) const {
    return live_.book().state().jobs.contains(request.jobid());
  }
  void note(const stage::BookOperation& carried_out);
  void warn_of_hidden(RuleReply& reply, const std::string& name) const;
  // Warns of a new rule by uid where a request may show another one than its process's.
  void warn_of_unsure_user(RuleReply& reply, const std::string& name) const;

  LiveState& live_;
  const HostNames& names_;
  const ReadWallClock now_;
  bool changed_ = false;
};

}  // namespace vpfs::control
