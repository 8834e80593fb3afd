#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// The statistics of jobs in the form of Lustre 2.15's job_stats, so that its readers read them.
//
// A virtual PFS whose requests show no job id is listed by its own name. Virtual PFSes of one job
// id are one entry, since readers want each id once. Rows of operations that the proxy does not
// measure have no samples.
[[nodiscard]] std::string job_stats_text(const control::StatsReply& reply);

}  // namespace vpfs::ctl
