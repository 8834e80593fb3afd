#include "tools/vpfsctl/ledger_text.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "control/words/past_words.h"
#include "control/words/printable.h"
#include "control/words/table.h"

namespace vpfs::ctl {
namespace {

using control::LedgerEntry;
using control::LedgerReply;
using words::size_text;
using words::Table;
using words::time_text;

std::string cause_text(const LedgerEntry& entry) {
  if (entry.cause() != LedgerEntry::LIMIT) return "other classes";
  if (entry.rate() == 0) return "a limit";
  return fmt::format("limit {}", to_string(BytesPerSecond{entry.rate()}));
}

std::string seconds_text(std::uint64_t microseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(microseconds) / 1e6);
}

// "": nothing was held.
std::string held_text(const LedgerReply& reply) {
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
  bool is_empty = true;
  for (const LedgerEntry& entry : reply.entries()) {
    if (entry.cause() == LedgerEntry::LOANS) continue;
    is_empty = false;
    table.add({time_text(entry.begin_at()), entry.goes_on() ? "goes on" : time_text(entry.end_at()),
               entry.name(), entry.jobid(), cause_text(entry), entry.rule(),
               seconds_text(entry.held_us()), size_text(entry.bytes()),
               std::to_string(entry.operations()), seconds_text(entry.longest_wait_us())});
  }
  return is_empty ? "" : table.text();
}

struct Account {
  std::uint64_t lent = 0;
  std::uint64_t borrowed = 0;
};

std::string balance_text(const Account& account) {
  if (account.lent >= account.borrowed) return size_text(account.lent - account.borrowed);
  return "-" + size_text(account.borrowed - account.lent);
}

template <typename Key>
void add_to(std::map<Key, Account>& accounts, const Key& key, const LedgerEntry& entry) {
  Account& to = accounts[key];
  to.lent += entry.lent_cost();
  to.borrowed += entry.borrowed_cost();
}

// A statement for each virtual PFS and job, and for each account. "": there were no loans.
std::string loans_text(const LedgerReply& reply) {
  using Job = std::pair<std::string, std::string>;
  std::map<Job, Account> jobs;
  std::map<std::string, Account> accounts;
  for (const LedgerEntry& entry : reply.entries()) {
    if (entry.cause() != LedgerEntry::LOANS) continue;
    add_to(jobs, Job(entry.name(), entry.jobid()), entry);
    if (!entry.account().empty()) add_to(accounts, entry.account(), entry);
  }
  if (jobs.empty()) return "";
  Table table({{"NAME"}, {"JOB"}, {"LENT", true}, {"BORROWED", true}, {"BALANCE", true}});
  for (const auto& [job, sums] : jobs) {
    table.add({job.first, job.second, size_text(sums.lent), size_text(sums.borrowed),
               balance_text(sums)});
  }
  if (accounts.empty()) return table.text();
  Table of_accounts({{"ACCOUNT"}, {"LENT", true}, {"BORROWED", true}, {"BALANCE", true}});
  for (const auto& [account, sums] : accounts) {
    of_accounts.add({account, size_text(sums.lent), size_text(sums.borrowed), balance_text(sums)});
  }
  return table.text() + "\n" + of_accounts.text();
}

}  // namespace

std::string ledger_text(const LedgerReply& reply) {
  const std::string held = held_text(reply);
  const std::string loans = loans_text(reply);
  if (!held.empty() && !loans.empty()) return held + "\n" + loans;
  if (!held.empty() || !loans.empty()) return held + loans;
  return reply.partial() ? "no job of yours was held by a limit or a traffic class\n"
                         : "nothing was held by a limit or a traffic class\n";
}

}  // namespace vpfs::ctl
