#include "control/site/site_metrics.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/clock.h"
#include "control/metrics/families.h"

namespace vpfs::coordinator {
namespace {

using allocation::Amounts;
using allocation::kResources;
using control::Families;

void add_amounts(Families& families, const Amounts& amounts) {
  for (const auto& resource : kResources) {
    families.set({{"resource", resource.name}}, static_cast<double>(amounts.*resource.amount));
  }
}

void add_cycles(Families& families, const SiteNumbers& numbers) {
  const RecentCycles::Summary& cycles = numbers.cycles;
  families.gauge("vpfs_coordinator_leads", "1 if this coordinator leads, 0 if it is a standby.");
  families.set({}, 1);
  families.gauge("vpfs_coordinator_store_works", "Whether the store of rules and jobs answers.");
  families.set({}, numbers.store_problem.empty() ? 1 : 0);
  families.gauge("vpfs_coordinator_term", "Term of the coordinator; each start has a higher one.");
  families.set({}, static_cast<double>(numbers.term));
  families.summary("vpfs_coordinator_cycle_seconds",
                   "Cycles, from the first message sent to the last answer or the deadline.");
  families.observe({}, cycles.cycles, in_seconds(cycles.sum));
  families.gauge("vpfs_coordinator_recent_cycle_seconds",
                 "Length of the last 1,000 cycles: median, 99th percentile, longest.");
  families.set({{"quantile", "0.5"}}, in_seconds(cycles.p50));
  families.set({{"quantile", "0.99"}}, in_seconds(cycles.p99));
  families.set({{"quantile", "1"}}, in_seconds(cycles.max));
  families.counter("vpfs_coordinator_late_answers_total",
                   "Answers of stages that had not come at the deadline of their cycle.");
  families.count({}, cycles.late);
}

void add_stages(Families& families, const SiteNumbers& numbers) {
  using Stage = SiteNumbers::Stage;
  const auto count = [&](auto is) {
    return static_cast<double>(std::ranges::count_if(numbers.stages, is));
  };
  families.gauge("vpfs_coordinator_stages", "Stages by what they are at present.");
  families.set({{"state", "connected"}}, count([](const Stage& each) { return each.connected; }));
  families.set({{"state", "late"}},
               count([](const Stage& each) { return each.connected && each.late; }));
  families.set({{"state", "silent"}},
               count([](const Stage& each) { return each.connected && each.silent; }));
  families.set({{"state", "absent"}}, count([](const Stage& each) { return !each.connected; }));
  families.gauge("vpfs_coordinator_stages_with_rules",
                 "Connected stages that have the site's present rules in force.");
  families.set({},
               count([](const Stage& each) { return each.connected && each.rules == "in force"; }));
  families.counter("vpfs_coordinator_lies_total",
                   "Counters and flows of stages that cannot be; they count as nothing.");
  families.count({}, numbers.lies);
  families.counter("vpfs_coordinator_refused_answers_total",
                   "Answers of stages that belong to no open cycle of this coordinator.");
  families.count({}, numbers.refused_answers);
  families.counter("vpfs_coordinator_not_applied_total",
                   "Cycles that a stage has refused to apply.");
  families.count({}, numbers.not_applied);
  families.counter("vpfs_coordinator_connections_refused_total",
                   "Connections refused: not a stage, no permission, or too many.");
  families.count({}, numbers.links.refused);
  families.counter("vpfs_coordinator_sent_bytes_total", "Bytes sent to stages.");
  families.count({}, numbers.links.sent_bytes);
  families.counter("vpfs_coordinator_received_bytes_total", "Bytes received from stages.");
  families.count({}, numbers.links.received_bytes);
}

void add_jobs(Families& families, const SiteNumbers& numbers, std::size_t most) {
  std::vector<const SiteNumbers::Job*> jobs;
  for (const SiteNumbers::Job& job : numbers.jobs) jobs.push_back(&job);
  if (jobs.size() > most) {
    std::ranges::nth_element(jobs, jobs.begin() + static_cast<std::ptrdiff_t>(most),
                             std::greater<>(), [](const auto* job) { return job->done; });
    jobs.resize(most);
  }
  families.gauge("vpfs_coordinator_jobs", "Virtual PFSes of the last cycle, by their names.");
  families.set({}, static_cast<double>(numbers.jobs.size()));
  families.gauge("vpfs_coordinator_job_stages", "Stages that have the virtual PFS.");
  for (const auto* job : jobs) {
    families.set({{"virtual_pfs", job->name}}, static_cast<double>(job->stages));
  }
  families.gauge("vpfs_coordinator_job_weight", "Weight of the virtual PFS on the whole site.");
  for (const auto* job : jobs) {
    families.set({{"virtual_pfs", job->name}}, static_cast<double>(job->weight));
  }
  families.gauge("vpfs_coordinator_job_granted",
                 "What the virtual PFS was granted on all stages together, each second.");
  for (const auto* job : jobs) {
    for (const auto& resource : kResources) {
      const std::uint64_t amount = job->granted.*resource.amount;
      if (amount == 0) continue;
      families.set({{"virtual_pfs", job->name}, {"resource", resource.name}},
                   static_cast<double>(amount));
    }
  }
}

}  // namespace

std::string site_metrics(const SiteNumbers& numbers, const std::string& version,
                         std::size_t most_jobs) {
  Families families;
  families.gauge("vpfs_coordinator_info", "1; the labels tell what runs here.");
  families.set({{"name", numbers.name}, {"policy", numbers.policy}, {"version", version}}, 1);
  add_cycles(families, numbers);
  add_stages(families, numbers);
  families.gauge("vpfs_coordinator_capacity", "What is divided among all stages, each second.");
  add_amounts(families, numbers.capacity);
  families.gauge("vpfs_coordinator_in_force",
                 "Sum of all limits that may be in force at stages, each second.");
  add_amounts(families, numbers.in_force);
  add_jobs(families, numbers, most_jobs);
  return families.text();
}

}  // namespace vpfs::coordinator
