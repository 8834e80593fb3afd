#include "tools/vpfsctl/rule_tables.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/joined.h"
#include "base/units.h"
#include "control/words/printable.h"
#include "control/words/table.h"

namespace vpfs::ctl {
namespace {

using words::printable;
using words::Table;
using words::time_text;

std::string difference_lines(const control::Difference& difference, const std::string& indent) {
  const std::string before = printable(difference.before());
  const std::string after = printable(difference.after());
  const std::string& kind = difference.kind();
  if (kind == "added") return fmt::format("{}+ {}\n", indent, after);
  if (kind == "removed") return fmt::format("{}- {}\n", indent, before);
  if (kind == "moved") return fmt::format("{}> {}\n", indent, after.empty() ? before : after);
  return fmt::format("{}~ {}\n{}  {}\n", indent, before, indent, after);
}

}  // namespace

std::string rule_note(const control::RuleState& rule) {
  std::vector<std::string> notes;
  if (!rule.problem().empty()) notes.push_back("not in force: " + rule.problem());
  if (!rule.hidden_by().empty()) notes.push_back("hidden by " + rule.hidden_by());
  if (rule.shadow()) {
    const control::Shadow& held = rule.would_hold();
    notes.push_back(fmt::format("shadow: would have held {} requests, {}, for {}", held.requests(),
                                to_string(Bytes{held.bytes()}),
                                to_string(Duration(std::chrono::microseconds(held.seconds_us())))));
  }
  return joined(notes, "; ");
}

std::string rule_table(const control::RuleReply& reply) {
  Table table({{"NAME"},
               {"ORIGIN"},
               {"HITS", true},
               {"VPFS MADE", true},
               {"UNTIL"},
               {"COND"},
               {"WORDS"},
               {"NOTE"}});
  for (const control::RuleState& rule : reply.rules()) {
    std::string note = rule_note(rule);
    if (rule.stages() < reply.stages()) {
      note += fmt::format("{}at {} of {} stages", note.empty() ? "" : "; ", rule.stages(),
                          reply.stages());
    }
    table.add({rule.name(), rule.origin(), std::to_string(rule.hits()),
               std::to_string(rule.virtual_pfs_made()), time_text(rule.until_at()),
               rule.condition(), joined(rule.words(), " "), note});
  }
  std::string text = table.text();
  if (reply.confirm_by_at() != 0) {
    text += fmt::format("waits for `vpfsctl rule confirm` until {}, then it is rolled back\n",
                        time_text(reply.confirm_by_at()));
  }
  return text;
}

std::string difference_text(const control::RuleReply& reply) {
  std::string text;
  for (const control::Difference& each : reply.differences()) text += difference_lines(each, "");
  return text;
}

std::string history_text(const control::RuleReply& reply) {
  if (reply.history().empty()) return "no changes yet\n";
  std::string text;
  for (const control::HistoryEntry& entry : reply.history()) {
    text += fmt::format("{}{}  {}  {}  {}\n", entry.version(),
                        entry.version() == reply.version() ? " *" : "", time_text(entry.at()),
                        printable(entry.who()), printable(entry.command()));
    for (const control::Difference& each : entry.differences()) {
      text += difference_lines(each, "    ");
    }
  }
  return text;
}

std::string job_table(const control::JobReply& reply) {
  Table table({{"JOBID"},
               {"NODES", true},
               {"UID"},
               {"GID"},
               {"ACCOUNT"},
               {"CLIENTS"},
               {"SINCE"},
               {"UNTIL"},
               {"ORIGIN"},
               {"VPFS"}});
  for (const control::JobState& job : reply.jobs()) {
    table.add({job.jobid(), job.nodes() == 0 ? "" : std::to_string(job.nodes()),
               joined(job.uids(), ","), joined(job.gids(), ","), job.account(),
               joined(job.clients(), ","), time_text(job.since_at()), time_text(job.until_at()),
               job.origin(), job.virtual_pfs()});
  }
  return table.text();
}

}  // namespace vpfs::ctl
