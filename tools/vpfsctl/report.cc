#include "tools/vpfsctl/report.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "control/words/printable.h"
#include "tools/vpfsctl/job_stats.h"
#include "tools/vpfsctl/ledger_text.h"
#include "tools/vpfsctl/record_text.h"
#include "tools/vpfsctl/rule_tables.h"
#include "tools/vpfsctl/status_text.h"
#include "tools/vpfsctl/who_table.h"

namespace vpfs::ctl {
namespace {

using words::printable;
using words::printable_lines;
using words::time_text;

// A proxy may say several lines.
std::string lines_of(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end)) + "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string done_text(const std::string& text) {
  return text.empty() ? "done\n" : lines_of(text);
}

std::string rule_text(const Command& command, const control::RuleReply& reply) {
  switch (command.verb) {
    case Verb::rule_list:
      return rule_table(reply);
    case Verb::rule_history:
      return history_text(reply);
    default:
      break;
  }
  std::string text;
  if (command.dry_run) {
    text = difference_text(reply);
    return text.empty() ? "nothing would change\n" : text;
  }
  if (command.verb == Verb::rule_apply || command.verb == Verb::rule_rollback) {
    text = difference_text(reply);
  }
  text += done_text(reply.text());
  if (reply.confirm_by_at() != 0) {
    text += fmt::format("waits for `vpfsctl rule confirm` until {}, then it is rolled back\n",
                        time_text(reply.confirm_by_at()));
  }
  return text;
}

std::string text_of(const Command& command, const control::Envelope& reply) {
  switch (reply.body_case()) {
    case control::Envelope::kRuleReply:
      return rule_text(command, reply.rule_reply());
    case control::Envelope::kJobReply:
      return command.verb == Verb::job_list ? job_table(reply.job_reply())
                                            : done_text(reply.job_reply().text());
    case control::Envelope::kLedgerReply:
      return ledger_text(reply.ledger_reply());
    case control::Envelope::kRecordReply:
      return record_text(reply.record_reply());
    case control::Envelope::kInForceReply:
      return printable_lines(reply.in_force_reply().file());
    case control::Envelope::kWhyReply:
      return who_text(reply.why_reply(), command.name);
    case control::Envelope::kStatsReply:
      return command.verb == Verb::job_stats ? job_stats_text(reply.stats_reply())
                                             : status_text(reply.stats_reply());
    case control::Envelope::kAck:
      return done_text(reply.ack().text());
    default:
      return "done\n";
  }
}

std::vector<std::string> warnings_of(const control::Envelope& reply) {
  switch (reply.body_case()) {
    case control::Envelope::kRuleReply:
      return {reply.rule_reply().warnings().begin(), reply.rule_reply().warnings().end()};
    case control::Envelope::kJobReply:
      return {reply.job_reply().warnings().begin(), reply.job_reply().warnings().end()};
    case control::Envelope::kAck:
      return {reply.ack().warnings().begin(), reply.ack().warnings().end()};
    default:
      return {};
  }
}

// Above what one of several proxies says. Lustre prints the name of each parameter that it gets.
std::string title(const Command& command, const std::string& name) {
  if (command.verb == Verb::job_stats) return fmt::format("obdfilter.{}.job_stats=\n", name);
  return fmt::format("{}:\n", name);
}

bool is_one_line(std::string_view text) {
  return !text.empty() && text.find('\n') + 1 == text.size();
}

}  // namespace

Report report(const Command& command, std::span<const ProxyAnswer> answers,
              const std::string& condition) {
  Report result;
  for (const ProxyAnswer& answer : answers) {
    if (answer.outcome != Outcome::done) {
      result.errors += error_text(answer, condition);
      continue;
    }
    const std::string name = printable(answer.name);
    for (const std::string& warning : warnings_of(answer.reply)) {
      result.errors += fmt::format("vpfsctl: {}: warning: {}\n", name, printable(warning));
    }
    const std::string text = text_of(command, answer.reply);
    if (answers.size() == 1) {
      result.output += text;
    } else if (is_one_line(text) && command.verb != Verb::job_stats) {
      result.output += fmt::format("{}: {}", name, text);
    } else {
      result.output += title(command, name) + text;
    }
  }
  return result;
}

}  // namespace vpfs::ctl
