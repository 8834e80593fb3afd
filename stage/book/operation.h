#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stage/book/live_rules.h"

// The changes of a rule book, as values. Each means the same whenever it is replayed: it has times
// of day instead of durations, and nothing in it depends on the configuration file.
// RuleBook::prepare() makes such operations of what callers ask for.
namespace vpfs::stage {

// Set: the clock of `for=` is set anew, to this time or to none.
using UntilChange = std::optional<std::optional<WallTime>>;

struct StartRule {
  RuleText rule;
  RuleOrigin origin = RuleOrigin::administrator;  // or coordinator
  std::optional<WallTime> until = {};

  bool operator==(const StartRule&) const = default;
};

// Replaces single words of a live rule.
struct ChangeRule {
  std::string name;
  std::vector<std::string> words;
  UntilChange until = {};
  std::vector<std::string> becomes = {};  // all words of the rule then; prepare() sets them

  bool operator==(const ChangeRule&) const = default;
};

// Replaces single words of the share of a virtual PFS. prepare() makes it of a ChangeRule that
// names a rule or virtual PFS of the file, or `default`.
struct ChangeShare {
  std::string virtual_pfs;
  bool overrides = true;
  std::vector<std::string> words;
  UntilChange until = {};
  std::vector<std::string> becomes = {};  // all of LiveShare::words then; prepare() sets them

  bool operator==(const ChangeShare&) const = default;
};

struct StopRule {
  std::string name;

  bool operator==(const StopRule&) const = default;
};

// Gives back what the file says.
struct StopShare {
  std::string virtual_pfs;

  bool operator==(const StopShare&) const = default;
};

// Replaces the whole set of the administrators.
struct ApplySet {
  struct Rule {
    RuleText text;
    std::optional<WallTime> until = {};

    bool operator==(const Rule&) const = default;
  };
  struct DeclaredShare {
    std::string virtual_pfs;
    std::vector<std::string> words;
    bool overrides = false;

    bool operator==(const DeclaredShare&) const = default;
  };
  std::vector<Rule> rules;
  std::vector<DeclaredShare> shares;

  bool operator==(const ApplySet&) const = default;
};

struct Confirm {
  bool operator==(const Confirm&) const = default;
};

struct Rollback {
  std::uint64_t version = 0;  // of the history; 0: the empty set at the beginning

  bool operator==(const Rollback&) const = default;
};

// Registers a job. One of that id is replaced: the batch system has started it anew.
struct StartJob {
  RegisteredJob job;
  std::vector<std::string> words;  // of a rule for its requests; none: no rule
  RuleOrigin origin = RuleOrigin::job;
  std::optional<WallTime> until = {};  // its time limit

  bool operator==(const StartJob&) const = default;
};

struct StopJob {
  std::string jobid;

  bool operator==(const StopJob&) const = default;
};

// Replaces all that came from a coordinator by what its site has now.
struct ReplaceSite {
  using Rule = ApplySet::Rule;
  struct Job {
    RegisteredJob job;
    std::optional<WallTime> until = {};

    bool operator==(const Job&) const = default;
  };
  std::string site;         // the coordinator's name, for people
  std::vector<Rule> rules;  // in the order in which they are tried
  std::vector<Job> jobs;

  bool operator==(const ReplaceSite&) const = default;
};

struct SetBypass {
  bool on = false;
  std::optional<WallTime> until = {};

  bool operator==(const SetBypass&) const = default;
};

// Ends all that is due at the time of the operation.
struct Expire {
  bool operator==(const Expire&) const = default;
};

struct BookOperation {
  WallTime at = {};
  std::string who;
  std::variant<StartRule, ChangeRule, ChangeShare, StopRule, StopShare, ApplySet, Confirm, Rollback,
               StartJob, StopJob, ReplaceSite, SetBypass, Expire>
      what;
  // If it changes the administrators' set: the set before comes back then, unless it is confirmed.
  // None: it holds for good.
  std::optional<WallTime> confirm_by = {};

  bool operator==(const BookOperation&) const = default;
};

// As an administrator would type it: "rule change backup rate=100MiB/s".
[[nodiscard]] std::string command_of(const BookOperation& operation);

}  // namespace vpfs::stage
