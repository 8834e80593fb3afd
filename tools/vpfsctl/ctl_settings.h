#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/tls.h"
#include "tools/vpfsctl/site/command.h"
#include "tools/vpfsctl/site/targets.h"
#include "tools/vpfsctl/top/top_view.h"

namespace vpfs::ctl {

// All that a command line says.
struct CtlSettings {
  Command command;
  TargetOptions targets;
  std::string coordinator;          // its endpoint; "": proxies are asked themselves
  std::vector<std::string> stages;  // of the coordinator; none: all
  net::TlsFiles tls;
  std::string timeout = "5s";
  bool json = false;
  bool names_only = false;  // of lists
  TopSettings top;
};

// An error: a coordinator cannot be asked for that.
[[nodiscard]] Result<void> check_for_coordinator(const CtlSettings& settings);

}  // namespace vpfs::ctl
