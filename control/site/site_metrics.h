#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "control/site/site_numbers.h"

namespace vpfs::coordinator {

// The numbers in the text format of Prometheus, with series for so many jobs: those that have done
// most. docs/admin/monitoring.md explains every metric.
[[nodiscard]] std::string site_metrics(const SiteNumbers& numbers, const std::string& version,
                                       std::size_t most_jobs);

// What a member knows of all members.
struct MemberState {
  std::uint64_t epoch = 0;  // of its view; 0: it was told none
  std::size_t members = 0;  // in the view
  bool takes_part = false;  // the view has it
};
// What a coordinator that serves a part of the stages adds to its metrics, whether it leads or not.
// `numbers` are those of its part.
[[nodiscard]] std::string member_metrics(const SiteNumbers& numbers, const MemberState& state);

}  // namespace vpfs::coordinator
