#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/config_reader.h"
#include "base/units.h"
#include "client/beegfs/storage_address.h"
#include "client/orangefs/calls/mount_address.h"

namespace vpfs::load {

enum class Pattern { sequential, random };

struct Burst {
  Duration length = {};
  Duration interval = {};
};

struct ApplicationSettings {
  std::string name;
  std::string jobid;
  std::uint32_t uid = 0;
  std::string node;  // "": each process is a node of its own
  std::uint64_t processes = 1;
  std::uint64_t connections = 1;
  std::uint64_t outstanding = 1;
  Bytes size = {kMiB};
  std::uint64_t read_percent = 0;
  Pattern pattern = Pattern::sequential;
  Bytes file_size = {64 * kMiB};
  std::uint64_t datafiles = 0;
  std::vector<std::string> servers;   // by alias; none: the file system chooses
  Bytes amount = {0};                 // of each process, which then ends; 0: no end
  Duration think = Duration::zero();  // from an answer to the next request in its place
  Duration start = Duration::zero();
  std::optional<Duration> stop;
  std::optional<Burst> burst;
};

// conf/load.yaml, checked.
struct LoadSettings {
  std::string file_system;
  std::variant<client::MountAddress, client::StorageAddress> mount;
  std::string directory = "/load";
  Duration duration = std::chrono::seconds(10);
  Duration warm_up = std::chrono::seconds(1);
  Duration interval = std::chrono::seconds(1);
  bool until_done = false;  // the run ends with its last process, at `duration` at the latest
  bool verify = false;
  bool keep_files = false;
  bool may_replace = false;  // also files of a load that runs, or may run on another host
  std::uint64_t seed = 1;
  std::uint64_t threads = 1;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<ApplicationSettings> applications;

  [[nodiscard]] Duration run_length() const { return warm_up + duration; }
};

// What the command line sets instead of the file.
struct Overrides {
  std::optional<std::string> file_system;
  std::optional<Duration> duration;
  std::optional<Duration> warm_up;
  std::optional<Duration> interval;
};

// Meaningful only when `errors` stays empty.
[[nodiscard]] LoadSettings read_settings(std::string_view text, const Overrides& overrides,
                                         ConfigErrors& errors);

}  // namespace vpfs::load
