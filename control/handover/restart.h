#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/config_reader.h"
#include "control/host/config.h"

namespace vpfs::control {

// A new process takes over (docs/decisions/0065-hot-restart.md): the mapping `restart` of a file.
struct Restart {
  std::string socket;  // where it dials; "": beside the control socket, if there is one
  Duration patience = std::chrono::milliseconds(30);
  Duration drain = std::chrono::minutes(5);
};

// `running` is that of the running program; a change that needs a restart is an error.
void read_restart(ConfigReader reader, Restart& restart, const Restart* running,
                  const ProgramName& name);

// Warns if there is a control socket and nothing fits beside it.
void check_restart(const Restart& restart, const HostConfig& config, ConfigErrors& errors);

// Where a new process dials; "": none can.
[[nodiscard]] std::string restart_socket(const Restart& restart, const HostConfig& config);

}  // namespace vpfs::control
