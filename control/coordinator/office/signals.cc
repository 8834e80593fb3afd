#include "control/coordinator/office/signals.h"

#include <csignal>

#include <spdlog/spdlog.h>

#include "base/log/log.h"

namespace vpfs::coordinator {

bool goes_on_after(int signal) {
  switch (signal) {
    case SIGUSR2:
      reopen_log();
      return true;
    case SIGHUP:
      spdlog::warn("SIGHUP: a coordinator reads its configuration at its start: restart it");
      return true;
    case SIGUSR1:
      spdlog::warn(
          "SIGUSR1: a coordinator writes no status file: `vpfsctl --coordinator ... "
          "status` asks it");
      return true;
    default:
      return false;
  }
}

}  // namespace vpfs::coordinator
