#pragma once

#include <cstddef>
#include <string>

#include "control/site/site_numbers.h"

namespace vpfs::coordinator {

// The numbers in the text format of Prometheus, with series for so many jobs: those that have done
// most. docs/admin/monitoring.md explains every metric.
[[nodiscard]] std::string site_metrics(const SiteNumbers& numbers, const std::string& version,
                                       std::size_t most_jobs);

}  // namespace vpfs::coordinator
