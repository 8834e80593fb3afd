#include "control/handover/restart.h"

#include <fmt/format.h>

#include "net/unix_socket.h"

namespace vpfs::control {
namespace {
constexpr const char* kBeside = ".restart";
}  // namespace

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

void check_restart(const Restart& restart, const HostConfig& config, ConfigErrors& errors) {
  if (config.control.socket.empty() || !restart_socket(restart, config).empty()) return;
  errors.warn("restart.socket",
              fmt::format("is missing, and control.socket is too long to have \"{}\" behind it: "
                          "no process can take over, as `vpfsctl upgrade` has one do",
                          kBeside));
}

std::string restart_socket(const Restart& restart, const HostConfig& config) {
  if (!restart.socket.empty() || config.control.socket.empty()) return restart.socket;
  std::string beside = config.control.socket + kBeside;
  return beside.size() <= net::kMostSocketPath ? beside : "";
}

}  // namespace vpfs::control
