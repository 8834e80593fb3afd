#include "tools/vpfsctl/ctl_settings.h"

#include "tools/vpfsctl/site/coordinator_client.h"

namespace vpfs::ctl {

Result<void> check_for_coordinator(const CtlSettings& settings) {
  const Command& command = settings.command;
  if (!settings.targets.proxies.empty() || settings.targets.all || !settings.targets.file.empty()) {
    return fail("--coordinator has proxies of its own: leave --proxy, --proxies and --all out");
  }
  if (command.atomic) {
    return fail(
        "--atomic is for proxies without a coordinator: this one has its rules in one place");
  }
  if (command.verb == Verb::rule_plan) {
    return fail("rule plan tries rules of one proxy on what it has recorded: give --proxy instead");
  }
  const bool only_looks = command.verb == Verb::rule_list || command.verb == Verb::rule_history ||
                          command.verb == Verb::job_list;
  if (!settings.stages.empty() && is_of_coordinator(command) && !only_looks) {
    return fail("--stage: rules and jobs are those of the whole site; leave it out");
  }
  return {};
}

}  // namespace vpfs::ctl
