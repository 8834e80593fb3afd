#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "control/handover/restart.h"
#include "control/host/config.h"

namespace vpfs::fuse {

inline constexpr control::ProgramName kProgramName = {.program = "vpfs-mount", .role = "mount"};

// An eighth of the machine's memory, from 32 to 256 MiB.
[[nodiscard]] Bytes default_held_bytes();

// A stage whose I/O is a mounted directory.
struct Config : control::HostConfig {
  control::Restart restart;
  // How long files that are open at the end may stay so.
  Duration drain = std::chrono::seconds(20);
  // Memory for the data of writes that wait, of all users.
  Bytes held_bytes = default_held_bytes();
};

// Reads the schema of conf/mount.yaml; as proxy::parse_config(), for a mount.
[[nodiscard]] Config parse_config(std::string_view text, ConfigErrors& errors,
                                  const Config* running = nullptr,
                                  const stage::Names* names = nullptr,
                                  stage::PolicyLoader* plugins = nullptr);

// The configuration of a mount without a file: equal shares for jobs, and for users without one.
[[nodiscard]] std::string_view default_config();

// The configuration file that `errors` is about, parsed and checked against the host, with the
// host's addresses. Its name is "" for default_config(). Not empty, `socket` takes the place of
// control.socket.
[[nodiscard]] std::optional<Config> load_config_file(ConfigErrors& errors,
                                                     const std::string& socket,
                                                     const Config* running = nullptr,
                                                     const stage::Names* names = nullptr,
                                                     stage::PolicyLoader* plugins = nullptr);

// In words; as those of the proxy.
[[nodiscard]] std::vector<std::string> changes(const Config& before, const Config& after);
[[nodiscard]] std::string to_summary(const Config& config);
[[nodiscard]] std::vector<std::string> start_lines(const Config& config);

}  // namespace vpfs::fuse
