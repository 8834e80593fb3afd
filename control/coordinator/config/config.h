#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/config_reader.h"
#include "control/allocation/pair.h"
#include "control/coordinator/config/store_config.h"
#include "control/metrics/http_config.h"
#include "control/wire/port_address.h"
#include "control/wire/port_config.h"
#include "net/tls.h"

namespace vpfs::coordinator {

// A stage that the coordinator dials.
struct DialledStage {
  std::string name;  // "": as the stage calls itself
  control::PortAddress address;
  bool operator==(const DialledStage&) const = default;
};

// Where the processes of a coordinator listen for stages. One of them leads.
struct ParentConfig {
  // None: it is told later where its parent is.
  std::vector<control::PortAddress> addresses;
  net::TlsFiles tls;  // for addresses on TCP; empty: those for stages
  bool operator==(const ParentConfig&) const = default;
};

// The coordinators of a site serve its stages together.
struct MembersConfig {
  std::uint16_t port = 0;  // where the others reach the one that leads; 0: the kernel chooses
  bool operator==(const MembersConfig&) const = default;
};

// What the administrator gives a virtual PFS on all stages together, by its name.
struct JobConfig {
  std::string name;
  std::optional<std::uint32_t> weight;  // nothing: as the stages have it
  allocation::Amounts most;             // of all stages, each second; zero: no bound
  allocation::Amounts limit;            // of each stage; for the policy `static`
  bool operator==(const JobConfig&) const = default;
};

enum class CycleKind : std::uint8_t {
  fused,  // limits go out with what was reported last; the answer is the next report
  four,   // ask, report; limits, answer
};

// The configuration file of vpfs-coordinator.
struct Config {
  std::string name;
  std::string policy = "total";
  allocation::Amounts capacity;  // of all stages, each second; zero: not divided
  allocation::Amounts floor;
  Duration period = std::chrono::milliseconds(50);  // zero: one cycle right after the other
  Duration deadline = std::chrono::milliseconds(25);
  Duration lease = std::chrono::seconds(1);
  Duration transit = std::chrono::milliseconds(500);
  std::uint32_t silent_cycles = 10;
  CycleKind cycle = CycleKind::fused;
  std::string cost_model;            // "": that of the stages that are connected
  std::string journal;               // of the only coordinator of a site
  std::optional<StoreConfig> store;  // or what several share
  std::optional<MembersConfig> members;
  std::vector<JobConfig> jobs;
  std::vector<DialledStage> dial;
  control::PortConfig listen;                // where stages dial in; its writers may be stages
  std::string listen_key = "stages.listen";  // of that mapping
  bool listen_is_reserved = false;           // this process has reserved its TCP port
  net::TlsFiles dialling;                    // for stages and parents on TCP
  std::optional<ParentConfig> parent;
  control::PortConfig control;  // administrators
  control::HttpConfig http;
  std::string log = "stderr";
  std::string log_level = "info";

  [[nodiscard]] bool dials_tcp() const;
};

// Reads the text of a file. Mistakes go into `errors`; then the result must not be used.
[[nodiscard]] Config parse_config(std::string_view text, ConfigErrors& errors);
// Reads the file, and looks at what only this host can say. Nothing if there are errors.
[[nodiscard]] std::optional<Config> load_config_file(ConfigErrors& errors);

}  // namespace vpfs::coordinator
