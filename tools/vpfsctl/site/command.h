#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/wire/control.pb.h"

namespace vpfs::ctl {

enum class Verb {
  rule_start,
  rule_change,
  rule_stop,
  rule_list,
  rule_apply,
  rule_confirm,
  rule_history,
  rule_rollback,
  rule_plan,
  job_start,
  job_stop,
  job_list,
  status,
  top,
  stat,
  job_stats,
  who,
  why,
  fairness,
  ledger,
  record_show,
  record_start,
  record_stop,
  record_drop,
  record_dump,
  reload,
  drain,
  upgrade,
  bypass,
  config,
  selftest  // it asks by itself
};

// What a command line asks for, as it was typed.
struct Command {
  Verb verb = Verb::status;
  std::string name;                // of a rule or job, or what `who` and `why` ask about
  std::string condition;           // start; its rest is in `words` if a shell has split it
  std::vector<std::string> words;  // what follows
  std::string file_name;           // apply, plan
  std::string file_text;
  bool dry_run = false;
  std::string confirm;        // apply
  std::uint64_t version = 0;  // rollback
  std::uint32_t nodes = 0;    // job start, from here on
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::string clients;
  std::string account;
  std::string time_limit;
  std::vector<std::string> wishes;  // of the job's user, as weight=4
  std::string bounds;               // of the wishes
  bool best_effort = false;
  bool atomic = false;
  std::string last;    // plan
  std::string size;    // record start, and `duration`
  std::string format;  // record dump, with `file_name`
  std::string since;   // why, fairness and ledger, as at and duration
  std::string at;
  std::string duration;
};

// What this host knows of names, and of the time. A number stands for itself and is not looked up.
struct Names {
  std::function<std::optional<std::uint32_t>(const std::string&)> user;
  std::function<std::optional<std::uint32_t>(const std::string&)> group;
  WallTime now = {};
};

// The request that says it to a proxy. An error is about the command line. With `json`, `status`
// asks for the whole status instead of a summary.
[[nodiscard]] Result<control::Envelope> to_request(const Command& command, const Names& names,
                                                   bool json);

}  // namespace vpfs::ctl
