#include "tools/vpfsctl/ctl_settings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "control/wire/leader/address_list.h"
#include "tools/vpfsctl/site/coordinator_client.h"

namespace vpfs::ctl {
namespace {

// Without the parts of a text that has none.
void add_parts(std::string_view text, std::vector<std::string_view>& parts) {
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.emplace_back();
  }
}

}  // namespace

Result<std::vector<control::PortAddress>> coordinators_of(const CtlSettings& settings) {
  std::vector<std::string_view> parts;
  for (const std::string& text : settings.coordinators) add_parts(text, parts);
  std::vector<control::PortAddress> addresses;
  for (const std::string_view part : parts) {
    auto address = control::parse_port_address(part);
    if (!address) return fail("--coordinator: " + address.error().message);
    const bool is_known = std::ranges::find(addresses, *address) != addresses.end();
    if (!is_known) addresses.push_back(std::move(*address));
  }
  if (addresses.size() <= control::kMostAddresses) return addresses;
  return fail(fmt::format("--coordinator: these are {} endpoints; there may be {}",
                          addresses.size(), control::kMostAddresses));
}

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
  if (command.verb == Verb::selftest) {
    return fail("selftest tests one proxy and its server: give --proxy instead");
  }
  if (!settings.stages.empty() && is_of_coordinator(command) && !only_looks) {
    return fail("--stage: rules and jobs are those of the whole site; leave it out");
  }
  return {};
}

}  // namespace vpfs::ctl
