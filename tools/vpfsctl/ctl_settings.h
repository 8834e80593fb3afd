#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/wire/port_address.h"
#include "net/tls.h"
#include "tools/selftest/settings.h"
#include "tools/vpfsctl/site/command.h"
#include "tools/vpfsctl/site/targets.h"
#include "tools/vpfsctl/top/top_view.h"

namespace vpfs::ctl {

// All that a command line says.
struct CtlSettings {
  Command command;
  TargetOptions targets;
  // Endpoints of its processes, each with commas between several. None: proxies are asked
  // themselves.
  std::vector<std::string> coordinators;
  std::vector<std::string> stages;  // of the coordinator; none: all
  net::TlsFiles tls;
  std::string timeout;  // "": that of the command
  bool json = false;
  bool names_only = false;  // of lists
  TopSettings top;
  selftest::Options selftest;
};

// Where the coordinator's processes are, each once. The error names --coordinator.
[[nodiscard]] Result<std::vector<control::PortAddress>> coordinators_of(
    const CtlSettings& settings);

// An error: a coordinator cannot be asked for that.
[[nodiscard]] Result<void> check_for_coordinator(const CtlSettings& settings);

}  // namespace vpfs::ctl
