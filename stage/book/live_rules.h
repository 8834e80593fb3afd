#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "stage/config/config.h"
#include "stage/rules/job_registry.h"

// What administrators, batch systems and coordinators have changed while the stage runs.
namespace vpfs::stage {

// Rules of jobs have names that begin like this; no other rule may.
inline constexpr std::string_view kJobRulePrefix = "job:";

// Immutable once it is in a rule book.
struct LiveRule {
  RuleText text;  // without `for=`
  RuleOrigin origin = RuleOrigin::administrator;
  std::string by;
  WallTime since = {};
  std::optional<WallTime> until;

  bool operator==(const LiveRule&) const = default;
};

// The share of a virtual PFS, as administrators have it. Immutable once it is in a rule book.
struct LiveShare {
  std::string virtual_pfs;
  // The words replace those of the file's share; "rate=none" takes one away. Else the virtual PFS
  // is not the file's, and has just these words.
  bool overrides = false;
  std::vector<std::string> words;
  std::string by;
  WallTime since = {};
  std::optional<WallTime> until;

  bool operator==(const LiveShare&) const = default;
};

// All that is the administrators', in order. Immutable once it is in a rule book.
struct LiveSet {
  // Versions of the set have most of their rules in common, so they share them.
  std::vector<std::shared_ptr<const LiveRule>> rules;
  std::vector<std::shared_ptr<const LiveShare>> shares;
};
[[nodiscard]] bool operator==(const LiveSet& a, const LiveSet& b);

// A job that a batch system has started.
struct LiveJob {
  RegisteredJob job;
  RuleOrigin origin = RuleOrigin::job;
  std::string by;
  WallTime since = {};
  std::optional<WallTime> until;  // its time limit
  // Its own rule, "job:ID"; null: none. Whoever has composed a configuration of it keeps it.
  std::shared_ptr<const LiveRule> rule;
};
[[nodiscard]] bool operator==(const LiveJob& a, const LiveJob& b);

// Everything is forwarded at once while it is on.
struct Bypass {
  bool on = false;
  std::string by;
  WallTime since = {};
  std::optional<WallTime> until;

  bool operator==(const Bypass&) const = default;
};

// The set in force is given up at the deadline.
struct PendingConfirmation {
  WallTime deadline;
  std::uint64_t version;  // that comes back then

  bool operator==(const PendingConfirmation&) const = default;
};

// A version of the administrators' set, and what made it.
struct HistoryEntry {
  std::uint64_t version = 0;
  WallTime at = {};
  std::string who;
  std::string command;
  std::shared_ptr<const LiveSet> set;  // the newest one is also the set in force
};
[[nodiscard]] bool operator==(const HistoryEntry& a, const HistoryEntry& b);

// Everything that a rule book knows, as a snapshot has it.
struct BookState {
  std::uint64_t number = 0;   // of the last operation
  std::uint64_t version = 0;  // of the administrators' set; 0 is the empty one at the beginning
  // Null: empty. The history has it too.
  std::shared_ptr<const LiveSet> administrators;
  std::vector<HistoryEntry> history;  // oldest first
  std::vector<std::shared_ptr<const LiveRule>> coordinators;
  std::map<std::string, LiveJob, std::less<>> jobs;  // by id
  // Jobs of a coordinator's site, by id. Those that are registered here or in the file count
  // instead of them.
  std::map<std::string, LiveJob, std::less<>> site_jobs;
  Bypass bypass;
  std::optional<PendingConfirmation> pending;
};
[[nodiscard]] bool operator==(const BookState& a, const BookState& b);

}  // namespace vpfs::stage
