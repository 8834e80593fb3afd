#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "control/handover/restart.h"
#include "control/host/config.h"
#include "net/congestion/congestion_control.h"

namespace vpfs::proxy {

struct Limits {
  std::size_t connections = 10'000;
  // Per connection. At the limit reading stops; while an I/O of the connection is at the data
  // server, it goes on up to four times the limit.
  std::size_t held_requests = 4096;
  Bytes held_bytes = {kMiB};  // limit on the size of their messages
};

struct Timeouts {
  Duration connect = std::chrono::seconds(5);
  std::optional<Duration> hold;  // none: automatic
  // Requests are held for this long even if clients have a shorter time-out.
  Duration hold_min = std::chrono::seconds(60);
  Duration drain = std::chrono::seconds(20);
  // An outstanding I/O without progress for this long loses its slot. Its connection stays.
  Duration service = std::chrono::seconds(60);
  // How long clients may keep the data server waiting in each minute by moving file data more
  // slowly than the rate. Then they lose their slots (see StallBudgets).
  Duration client_stall = std::chrono::seconds(2);
  BytesPerSecond client_min_rate = {kMiB};
};

inline constexpr std::string_view kOriginal = "original";
inline constexpr control::ProgramName kProgramName = {.program = "vpfs-proxy", .role = "proxy"};

// A stage whose I/O is a relayed wire protocol.
struct Config : control::HostConfig {
  std::string listen;
  std::string upstream;  // kOriginal: the original destination of each client
  std::string protocol = "orangefs";
  // Addresses or CIDR blocks of the file system's other servers, whose I/O passes unscheduled.
  std::vector<std::string> servers;
  std::optional<std::uint64_t> workers = 1;  // none: automatic
  // How long a worker polls before it sleeps (BusyPoll); zero: it does not. None: automatic.
  std::optional<Duration> busy_poll = {};
  std::string local_congestion = net::kLocalCongestion;  // "system": connections stay as they are
  Limits limits;
  Timeouts timeouts;
  control::Restart restart;
  // restart.keep_over_crash: the service manager keeps connections that are at rest.
  bool keep_over_crash = true;
  // Whether data that a node's kernel writes back belongs to the only user of its file.
  bool write_back_by_file = true;
};

// How many workers a proxy has on a host with so many processors. Automatic: one for four of them,
// since the data server needs most, and eight at most.
[[nodiscard]] std::size_t worker_count(const Config& config, std::size_t processors);

// Reads the schema of conf/proxy.yaml. Errors go into `errors`; the result is valid only if there
// are none. Does no I/O: check_host() checks the host, and warn_of_hidden_rules() finds rules that
// never apply. `running` is the configuration of the running proxy; a change that needs a restart
// is an error. `names` looks up users, groups and hosts in rules and jobs; null: they are refused.
// So is `plugins` of the mapping `scheduler` without a loader.
[[nodiscard]] Config parse_config(std::string_view text, ConfigErrors& errors,
                                  const Config* running = nullptr,
                                  const stage::Names* names = nullptr,
                                  stage::PolicyLoader* plugins = nullptr);

}  // namespace vpfs::proxy
