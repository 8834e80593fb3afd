#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
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
  std::optional<stage::ApplySet> set;   // of `rule apply`
  std::optional<Error> mistake;         // why its file is not a rule set
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

  struct Hooks {
    // The book has changed: live.composed() is to be put into force.
    std::function<void()> changed;
    // What was counted of rules; where no requests are seen there is nothing.
    std::function<std::vector<StageSnapshot::Rule>()> count;
  };

  // `live` outlives it.
  RuleAdministration(LiveState& live, ReadWallClock now, Hooks hooks)
      : live_(live), now_(now), hooks_(std::move(hooks)) {}

  // `read`: what names_of() has read for this request; may be null.
  [[nodiscard]] Outcome<RuleReply> rule(const Rule& request, const Caller& caller,
                                        ReadRequest* read = nullptr);
  [[nodiscard]] Outcome<JobReply> job(const Job& request, const Caller& caller);
  [[nodiscard]] JobReply list_jobs(const Caller& caller);
  // The names that carrying the request out will look up. If there are none, `read` gets the rules
  // that were read for that, so that rule() need not read them again at once; it may be null.
  [[nodiscard]] WantedNames names_of(const Envelope& request, const Caller& caller,
                                     ReadRequest* read = nullptr) const;
  // Carries an operation out, and puts what follows into force.
  [[nodiscard]] Outcome<stage::Change> carry_out(stage::BookOperation operation,
                                                 stage::ParsedRules* read = nullptr);
  // The second half of it.
  [[nodiscard]] Outcome<void> put_into_force(const stage::Change& change,
                                             const stage::ParsedRules* read = nullptr);
  // Ends rules, jobs and confirmations whose time is over. Returns whether there were any.
  bool tick();

 private:
  [[nodiscard]] Outcome<RuleReply> list_rules();
  [[nodiscard]] RuleReply history() const;
  [[nodiscard]] Outcome<RuleReply> change_rules(const Rule& request, const Caller& caller,
                                                ReadRequest& read);
  // What the request does. Takes it from `read` if it is there.
  [[nodiscard]] Outcome<stage::Change> prepared(const Rule& request, const Caller& caller,
                                                ReadRequest& read);
  [[nodiscard]] std::expected<stage::BookOperation, Error> operation_of(const Rule& request,
                                                                        const Caller& caller,
                                                                        const stage::Config& file,
                                                                        ReadRequest& read) const;
  void warn_of_hidden(RuleReply& reply, const std::string& name) const;
  // Warns of a new rule by uid where a request may show another one than its process's.
  void warn_of_unsure_user(RuleReply& reply, const std::string& name) const;

  LiveState& live_;
  ReadWallClock now_;
  const Hooks hooks_;
};

}  // namespace vpfs::control
