#include "tools/vpfsctl/who_table.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/joined.h"
#include "control/words/printable.h"
#include "control/words/table.h"
#include "tools/vpfsctl/rule_tables.h"

namespace vpfs::ctl {
namespace {

using words::Table;

// As a condition would say it.
std::string shown(const control::Seen& seen) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, const std::string& value) {
    parts.push_back(fmt::format("{}={}", name, value));
  };
  if (!seen.jobid().empty()) {
    add("jobid", seen.jobid() + (seen.job_from_registration() ? " (registered)" : ""));
  }
  if (seen.has_uid()) add("uid", std::to_string(seen.uid()));
  if (seen.has_file_system()) add("fs", std::to_string(seen.file_system()));
  if (!seen.directory().empty()) add("dir", seen.directory());
  if (seen.has_owner()) add("owner", std::to_string(seen.owner()));
  if (seen.has_node()) add("node", std::to_string(seen.node()));
  if (seen.has_target()) add("target", std::to_string(seen.target()));
  return joined(parts, " ");
}

}  // namespace

std::string who_text(const control::WhyReply& reply, const std::string& who) {
  Table table({{"CLIENT"},
               {"CONNECTIONS", true},
               {"RULE"},
               {"VPFS"},
               {"CLASS"},
               {"REQUESTS", true},
               {"LAST"},
               {"SHOWS"},
               {"NOTE"}});
  for (const control::Client& client : reply.clients()) {
    const std::string connections = std::to_string(client.connections());
    for (const control::Seen& seen : client.seen()) {
      table.add({client.address(), connections, seen.rule().empty() ? "default" : seen.rule(),
                 seen.virtual_pfs(), seen.class_(), std::to_string(seen.requests()), seen.kind(),
                 shown(seen), seen.note()});
    }
    if (client.seen().empty() && client.not_listed() == 0) {
      table.add({client.address(), connections, "", "", "", "0", "", "", "has sent no I/O"});
    }
  }
  std::string text;
  if (!table.empty()) {
    text = table.text();
  } else if (who.empty()) {
    text = "no client is in default\n";
  } else {
    text = fmt::format("no client that has shown \"{}\" is connected\n", words::printable(who));
  }
  for (const control::Client& client : reply.clients()) {
    if (client.not_listed() == 0) continue;
    text += fmt::format("{}: and {} more that are not listed, with {} requests\n",
                        words::printable(client.address()), client.not_listed(),
                        client.requests_not_listed());
  }
  if (reply.jobs_size() > 0) {
    control::JobReply jobs;
    *jobs.mutable_jobs() = reply.jobs();
    text += "\n" + job_table(jobs);
  }
  return text;
}

}  // namespace vpfs::ctl
