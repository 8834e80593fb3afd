#include "control/site/site_metrics.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>

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

// Metrics that a coordinator has as such, and again as a member: they differ in how names begin.
class Group {
 public:
  Group(Families& families, std::string_view prefix) : families_(families), prefix_(prefix) {}

  void gauge(std::string_view name, std::string_view help) {
    families_.gauge(fmt::format("{}{}", prefix_, name), help);
  }
  void counter(std::string_view name, std::string_view help) {
    families_.counter(fmt::format("{}{}", prefix_, name), help);
  }
  void count(std::string_view name, std::string_view help, std::uint64_t value) {
    counter(name, help);
    families_.count({}, value);
  }
  void set(std::string_view name, std::string_view help, double value) {
    gauge(name, help);
    families_.set({}, value);
  }

  void add_cycles(const RecentCycles::Summary& cycles);
  void add_stages(const SiteNumbers& numbers);
  void add_in_force(const SiteNumbers& numbers);

 private:
  Families& families_;
  const std::string_view prefix_;
};

void Group::add_cycles(const RecentCycles::Summary& cycles) {
  families_.summary(fmt::format("{}cycle_seconds", prefix_),
                    "Cycles, from the first message sent to the last answer or the deadline.");
  families_.observe({}, cycles.cycles, in_seconds(cycles.sum));
  gauge("recent_cycle_seconds",
        "Length of the last 1,000 cycles: median, 99th percentile, longest.");
  families_.set({{"quantile", "0.5"}}, in_seconds(cycles.p50));
  families_.set({{"quantile", "0.99"}}, in_seconds(cycles.p99));
  families_.set({{"quantile", "1"}}, in_seconds(cycles.max));
  count("late_answers_total", "Answers of stages that had not come at the deadline of their cycle.",
        cycles.late);
}

void Group::add_stages(const SiteNumbers& numbers) {
  using Stage = SiteNumbers::Stage;
  const auto number = [&](auto is) {
    return static_cast<double>(std::ranges::count_if(numbers.stages, is));
  };
  gauge("stages", "Stages by what they are at present.");
  families_.set({{"state", "connected"}}, number([](const Stage& each) { return each.connected; }));
  families_.set({{"state", "late"}},
                number([](const Stage& each) { return each.connected && each.late; }));
  families_.set({{"state", "silent"}},
                number([](const Stage& each) { return each.connected && each.silent; }));
  families_.set({{"state", "absent"}}, number([](const Stage& each) { return !each.connected; }));
  set("stages_with_rules", "Connected stages that have the site's present rules in force.",
      number([](const Stage& each) { return each.connected && each.rules == "in force"; }));
  count("lies_total", "Counters and flows of stages that cannot be; they count as nothing.",
        numbers.lies);
  count("refused_answers_total", "Answers of stages that belong to no open cycle.",
        numbers.refused_answers);
  count("not_applied_total", "Cycles that a stage has refused to apply.", numbers.not_applied);
  count("connections_refused_total",
        "Connections refused: not a stage, no permission, or too many.", numbers.links.refused);
  count("sent_bytes_total", "Bytes sent to stages.", numbers.links.sent_bytes);
  count("received_bytes_total", "Bytes received from stages.", numbers.links.received_bytes);
}

void Group::add_in_force(const SiteNumbers& numbers) {
  gauge("in_force", "Sum of all limits that may be in force at stages, each second.");
  add_amounts(families_, numbers.in_force);
}

void add_office(Group& group, const SiteNumbers& numbers) {
  group.set("leads", "1 if this coordinator leads, 0 if it is a standby.", 1);
  group.set("store_works", "Whether the store of rules and jobs answers.",
            numbers.store_problem.empty() ? 1 : 0);
  group.set("divides", "Whether the policy could divide in the last cycle; else limits stay.",
            numbers.policy_problem.empty() ? 1 : 0);
  group.set("term", "Term of the coordinator; each start has a higher one.",
            static_cast<double>(numbers.term));
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
  Group group(families, "vpfs_coordinator_");
  add_office(group, numbers);
  control::add_certificate_end(families, numbers.certificate_end);
  group.add_cycles(numbers.cycles);
  group.add_stages(numbers);
  families.gauge("vpfs_coordinator_capacity", "What is divided among all stages, each second.");
  add_amounts(families, numbers.capacity);
  group.add_in_force(numbers);
  add_jobs(families, numbers, most_jobs);
  return families.text();
}

std::string member_metrics(const SiteNumbers& numbers, const MemberState& state) {
  Families families;
  Group group(families, "vpfs_member_");
  group.set("takes_part", "1 if the last view that this member was told has it.",
            state.takes_part ? 1 : 0);
  group.set("view", "Epoch of the last view of the members that this one was told.",
            static_cast<double>(state.epoch));
  group.set("members", "Members in that view.", static_cast<double>(state.members));
  group.set("led", "1 if the lease of the one that leads is in force at this member.",
            numbers.parent && numbers.parent->is_led ? 1 : 0);
  group.add_cycles(numbers.cycles);
  group.add_stages(numbers);
  group.add_in_force(numbers);
  return families.text();
}

}  // namespace vpfs::coordinator
