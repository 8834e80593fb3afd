#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/tls.h"
#include "tools/vpfsctl/command.h"
#include "tools/vpfsctl/targets.h"
#include "tools/vpfsctl/top_table.h"

namespace vpfs::ctl {

struct TopSettings {
  TopView view;
  std::string period = "1s";
  std::uint64_t count = 0;  // how often; 0: until it is ended
  bool is_plain = false;
};

// All that a command line says.
struct Settings {
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

}  // namespace vpfs::ctl
