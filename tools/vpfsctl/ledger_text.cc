#include "tools/vpfsctl/ledger_text.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/units.h"
#include "control/words/past_words.h"
#include "control/words/printable.h"
#include "control/words/table.h"

namespace vpfs::ctl {
namespace {

using words::size_text;
using words::Table;
using words::time_text;

std::string cause_text(const control::LedgerEntry& entry) {
  if (entry.cause() != control::LedgerEntry::LIMIT) return "other classes";
  if (entry.rate() == 0) return "a limit";
  return fmt::format("limit {}", to_string(BytesPerSecond{entry.rate()}));
}

std::string seconds_text(std::uint64_t microseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(microseconds) / 1e6);
}

}  // namespace

std::string ledger_text(const control::LedgerReply& reply) {
  if (reply.entries().empty()) {
    return reply.partial() ? "no job of yours was held by a limit or a traffic class\n"
                           : "nothing was held by a limit or a traffic class\n";
  }
  Table table({{"BEGIN"},
               {"END"},
               {"NAME"},
               {"JOB"},
               {"HELD BY"},
               {"RULE"},
               {"HELD", true},
               {"MOVED", true},
               {"REQUESTS", true},
               {"LONGEST WAIT", true}});
  for (const control::LedgerEntry& entry : reply.entries()) {
    table.add({time_text(entry.begin_at()), entry.goes_on() ? "goes on" : time_text(entry.end_at()),
               entry.name(), entry.jobid(), cause_text(entry), entry.rule(),
               seconds_text(entry.held_us()), size_text(entry.bytes()),
               std::to_string(entry.operations()), seconds_text(entry.longest_wait_us())});
  }
  return table.text();
}

}  // namespace vpfs::ctl
