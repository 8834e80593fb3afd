#pragma once

#include <cstddef>
#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::control {

struct MetricsOptions {
  std::string version;  // of the program
  // Virtual PFSes and rules with series of their own; job names would make them endless.
  std::size_t most_virtual_pfs = 1000;
  std::size_t most_rules = 1000;
};

// The statistics of a stage in the text format of Prometheus. docs/admin/monitoring.md explains
// every metric.
//
// If there are more virtual PFSes than `most_virtual_pfs`, "default" and the most active ones are
// shown. Their counters go on where they were when they are shown again. A sum of counters over a
// set that changes may go down, so the others have no counters: totals over all virtual PFSes,
// retired ones too, are metrics of their own ("vpfs_all_..."), which never go down. Gauges of the
// others are summed up in "(others)".
[[nodiscard]] std::string metrics_text(const StatsReply& stats, const MetricsOptions& options);

}  // namespace vpfs::control
