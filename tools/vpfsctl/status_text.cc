#include "tools/vpfsctl/status_text.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "control/words/printable.h"

namespace vpfs::ctl {
namespace {

using words::printable;
using words::time_text;

std::string rules_text(const control::StatsReply& reply) {
  const auto count = [&reply](auto is) { return std::ranges::count_if(reply.rules(), is); };
  const auto live = count([](const control::RuleState& rule) { return rule.origin() != "file"; });
  std::string text = fmt::format("{}, {} of them live", reply.rules_size(), live);
  const auto not_in_force =
      count([](const control::RuleState& rule) { return !rule.problem().empty(); });
  if (not_in_force > 0) text += fmt::format(", {} NOT IN FORCE", not_in_force);
  const auto hidden =
      count([](const control::RuleState& rule) { return !rule.hidden_by().empty(); });
  if (hidden > 0) text += fmt::format(", {} hidden by others", hidden);
  return text;
}

std::string bypass_text(const control::StatsReply& reply) {
  const std::string until = reply.bypass_until_at() == 0
                                ? "until `vpfsctl bypass off`"
                                : "until " + time_text(reply.bypass_until_at());
  return fmt::format("! BYPASS IS ON {}: everything is forwarded at once, nothing is held\n",
                     until);
}

std::string coordinator_text(const control::StatsReply::Coordinator& coordinator) {
  if (coordinator.connected()) {
    return fmt::format("{} at {}, connected since {}", coordinator.name(), coordinator.address(),
                       time_text(coordinator.since_at()));
  }
  const std::string& problem = coordinator.problem();
  return fmt::format("{}, NOT CONNECTED since {}{}", coordinator.address(),
                     time_text(coordinator.since_at()), problem.empty() ? "" : ": " + problem);
}

}  // namespace

std::string status_text(const control::StatsReply& reply) {
  std::string text;
  if (reply.bypass()) text += bypass_text(reply);
  if (reply.draining()) text += "! IS DRAINING: it accepts no clients\n";
  const auto add = [&text](std::string_view what, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{:<13}{}\n", what, printable(value));
  };
  if (!reply.name().empty()) add("proxy", reply.name());
  if (!reply.upstream().empty()) add("upstream", reply.upstream());
  add("since", time_text(reply.started_at()));
  const bool has_depth_bytes = reply.depth_bytes() != 0 && reply.depth_bytes() != UINT64_MAX;
  add("policy",
      fmt::format("{}, depth {} requests{}", reply.policy(), reply.depth_requests(),
                  has_depth_bytes ? " and " + to_string(Bytes{reply.depth_bytes()}) : ""));
  add("requests", fmt::format("{} outstanding, {} queued", reply.outstanding(), reply.queued()));
  add("connections", std::to_string(reply.connections()));
  const auto in_use = std::ranges::count_if(
      reply.virtual_pfs(), [](const control::VirtualPfs& each) { return !each.removed(); });
  add("virtual PFS", std::to_string(in_use));
  if (reply.jobs_with_io() > 0) {
    add("jobs", fmt::format("{} do I/O, {} of them are registered", reply.jobs_with_io(),
                            reply.registered_jobs_with_io()));
  }
  add("rules", rules_text(reply));
  if (reply.certificate_ends_at() != 0) {
    add("certificate", "ends at " + time_text(reply.certificate_ends_at()));
  }
  if (reply.has_coordinator()) add("coordinator", coordinator_text(reply.coordinator()));
  if (reply.term() != 0) {
    add("coordinator",
        fmt::format("term {}, cycle {}, {}", reply.term(), reply.sequence(),
                    reply.allocated() ? "its limits are in force" : "its lease has ended"));
  }
  if (reply.partial()) text += "(only what you may see)\n";
  return text;
}

}  // namespace vpfs::ctl
