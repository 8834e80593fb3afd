#pragma once

#include <string>
#include <string_view>

#include "base/config_reader.h"
#include "base/units.h"
#include "control/metrics/http_config.h"
#include "control/wire/accounts.h"
#include "control/wire/port_config.h"
#include "stage/config/config.h"
#include "stage/rules/names.h"

namespace vpfs::control {

// What messages call a program that has a stage.
struct ProgramName {
  std::string_view program;  // "vpfs-proxy"
  std::string_view role;     // "proxy": in a sentence, and its own mapping in the configuration
};

// The part of the configuration that every program with a stage has, whatever its I/O.
struct HostConfig : stage::Config {
  std::string file_text;  // that it was read from
  std::string status_file;
  Duration status_interval = std::chrono::seconds(5);
  PortConfig control;
  HttpConfig http;
  std::string journal;         // of live rules; "": they end with the program
  std::string history;         // its minutes; "": they end with the program
  std::string ledger;          // the same of its spells
  std::string name;            // as administrators see it; "": its address
  std::string log = "stderr";  // or "journal", or a file (see base/log/log.h)
  std::string log_level = "info";
};

// Reads the keys of a program's own mapping that all have: the status file and the log. Looks at
// the text only; check_process() looks at the host.
void read_process(ConfigReader& own, HostConfig& config, const ProgramName& name);

// Reads the mapping `control` of the file. `running` is the configuration of the running program; a
// change that needs a restart is an error.
void read_control(ConfigReader& file, HostConfig& config, const HostConfig* running,
                  const ProgramName& name);

// Reports a key that a running program cannot take on, unless its value is the same.
void require_same(ConfigReader& reader, std::string_view key, bool same, const ProgramName& name);

// Checks whether a start finds the folders of what it makes: the socket, the journal, and so on.
void check_folders(const HostConfig& config, ConfigErrors& errors);

// Users and groups as `names` has them, which outlives it.
[[nodiscard]] Accounts accounts_of(const stage::Names& names);

// Checks what the host has for these keys: the status file is writable, the log exists, and so do
// users, groups and certificates of the control port.
// `names`: null for those of this host.
void check_process(const HostConfig& config, ConfigErrors& errors, const ProgramName& name,
                   const stage::Names* names);

}  // namespace vpfs::control
