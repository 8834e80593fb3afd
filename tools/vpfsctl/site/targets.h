#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/wire/port_address.h"

// Which proxies a command goes to.
namespace vpfs::ctl {

inline constexpr std::string_view kProxiesFile = "/etc/vpfs/proxies";
inline constexpr std::string_view kRunDirectory = "/run/vpfs";

struct Target {
  std::string name;  // in what is printed
  control::PortAddress endpoint;
  bool is_named = false;  // by the administrator; otherwise `name` is its endpoint

  bool operator==(const Target&) const = default;
};

struct TargetOptions {
  std::vector<std::string> proxies;        // --proxy
  bool all = false;                        // --all
  std::string file;                        // --proxies
  std::optional<std::string> environment;  // VPFS_PROXY: endpoints with spaces between them
};

// What of this host a choice depends on.
struct TargetPlaces {
  std::function<Result<std::string>(const std::string& file)> read;
  // Paths of the sockets in a directory, sorted; none if it does not exist.
  std::function<std::vector<std::string>(const std::string& directory)> sockets;
};

struct ChosenTargets {
  std::vector<Target> targets;
  std::string note;  // for people, when no option named these targets
};

// A file of proxies: one endpoint each line, and behind it a name if it shall have one; `#` begins
// a comment. The error of a bad line is "FILE:LINE: what is wrong".
[[nodiscard]] Result<std::vector<Target>> parse_proxies(std::string_view text,
                                                        std::string_view file);

// Named ones: --proxy, --all and --proxies together. Else those of the environment, else the socket
// proxy.sock in the run directory, else all sockets there but a coordinator's.
[[nodiscard]] Result<ChosenTargets> choose_targets(const TargetOptions& options,
                                                   const TargetPlaces& places);

}  // namespace vpfs::ctl
