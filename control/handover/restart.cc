#include "control/handover/restart.h"

#include <fmt/format.h>

#include "net/unix_socket.h"

namespace vpfs::control {

void read_restart(ConfigReader reader, Restart& restart, const Restart* running,
                  const ProgramName& name) {
  if (reader.get("socket", &restart.socket) && restart.socket.size() > net::kMostSocketPath) {
    reader.report("socket",
                  fmt::format("the path of a socket has 1 to {} bytes", net::kMostSocketPath));
  }
  reader.get("patience", &restart.patience, Duration::zero(), std::chrono::minutes(1));
  reader.get("drain", &restart.drain, Duration::zero(), std::chrono::hours(24));
  reader.finish();
  if (running == nullptr || !reader.flawless()) return;
  require_same(reader, "socket", restart.socket == running->socket, name);
}

std::string restart_socket(const Restart& restart, const HostConfig& config) {
  if (!restart.socket.empty() || config.control.socket.empty()) return restart.socket;
  std::string beside = config.control.socket + ".restart";
  return beside.size() <= net::kMostSocketPath ? beside : "";
}

}  // namespace vpfs::control
