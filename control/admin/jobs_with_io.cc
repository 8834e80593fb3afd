#include "control/admin/jobs_with_io.h"

#include <chrono>
#include <string_view>
#include <unordered_set>

namespace vpfs::control {
namespace {

constexpr Duration kLately = std::chrono::minutes(1);

bool did_io_lately(const StageSnapshot::Row& row, TimePoint now) {
  if (row.counters.queued.requests + row.counters.outstanding.requests > 0) return true;
  return row.statistics.since != TimePoint{} && now - row.statistics.last <= kLately;
}

}  // namespace

JobsWithIo jobs_with_io(const StageSnapshot& snapshot, const stage::Config& config) {
  std::unordered_set<std::string_view> seen;
  for (const StageSnapshot::Row& row : snapshot.rows) {
    if (!row.jobid.empty() && did_io_lately(row, snapshot.at)) seen.insert(row.jobid);
  }
  std::unordered_set<std::string_view> registered;
  for (const stage::RegisteredJob& each : config.jobs) {
    if (seen.contains(each.jobid)) registered.insert(each.jobid);
  }
  return {.all = seen.size(), .registered = registered.size()};
}

}  // namespace vpfs::control
