#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/wire/client.h"
#include "control/wire/control.pb.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/asked_proxies.h"
#include "tools/vpfsctl/site/command.h"

namespace vpfs::ctl {

// Whether a command is about what the coordinator itself has, its rules and jobs; others go through
// it to its stages.
[[nodiscard]] bool is_of_coordinator(const Command& command);

// Asks these stages, or all if there are none.
[[nodiscard]] control::Envelope forwarded(control::Envelope request,
                                          const std::vector<std::string>& stages);

// The answers of stages in that of their coordinator. Its own answer, if it has asked none.
[[nodiscard]] std::vector<ProxyAnswer> answers_of_stages(ProxyAnswer coordinator);

// The same, with errors that speak of a coordinator.
[[nodiscard]] SiteOptions for_coordinator(SiteOptions options);

// A coordinator, and its stages through it. It is the one of several processes that leads.
class CoordinatorClient {
 public:
  CoordinatorClient(const std::vector<control::PortAddress>& addresses, SiteOptions options);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ProxyAnswer ask(const control::Envelope& request);
  // In the order of their names.
  [[nodiscard]] std::vector<ProxyAnswer> ask_stages(const control::Envelope& request,
                                                    const std::vector<std::string>& stages);

 private:
  const std::string name_;
  const SiteOptions options_;
  control::LeaderClient client_;
};

}  // namespace vpfs::ctl
