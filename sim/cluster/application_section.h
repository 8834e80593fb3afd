#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "base/units.h"
#include "sim/cluster/placement/profile.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// An application of a cluster, or several that differ only in what is drawn at random.
struct ClusterApplication {
  std::string name;
  std::uint64_t count = 1;
  Duration start = Duration::zero();  // arrives at the batch system
  Duration every = Duration::zero();  // from the arrival of one to that of the next
  bool at_random = false;             // `every` in the mean
  Duration wall_time = Duration::zero();
  // Tasks, steps and sizes are between those of both. Everything else is the same in both.
  Profile least;
  Profile most;
  bool all_do_io = false;  // so `io_tasks` means nothing

  // The name of one of them, counted from 0.
  [[nodiscard]] std::string name_of(std::uint64_t copy) const;
  [[nodiscard]] Profile draw(Random& random) const;
};

// What applications are read with.
struct ClusterDefaults {
  std::uint64_t nodes = 0;    // of the cluster; 0: not known because of a mistake
  bool backfills = false;     // so each needs a wall time
  bool has_remote = true;     // `remote_percent` decides where accesses go
  bool needs_others = false;  // their data are on nodes that they do not have
  std::uint32_t memory_percent = 0;
  std::uint32_t remote_percent = 0;
};

// Reads the list `applications`.
[[nodiscard]] std::vector<ClusterApplication> read_cluster_applications(
    ConfigReader& reader, const ClusterDefaults& defaults);

// Reads a number of percent, which stays as it is without the key.
void read_percent(ConfigReader& reader, const char* key, std::uint32_t* percent);
// Likewise `remote_percent`, which is a mistake where it would not count.
void read_remote_percent(ConfigReader& reader, bool has_remote, std::uint32_t* percent);

}  // namespace vpfs::sim
