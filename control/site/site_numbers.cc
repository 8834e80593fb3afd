#include "control/site/site_numbers.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace vpfs::coordinator {
namespace {

using allocation::Amounts;
using allocation::CycleState;
using allocation::Grant;
using allocation::kResources;
using allocation::Pair;
using allocation::StageStatus;

void add(Amounts& sum, const Grant& grant) {
  for (const auto& resource : kResources) {
    sum.*resource.amount += (grant.*resource.grant).value_or(0);
  }
}

void add(Amounts& sum, const Amounts& more) {
  for (const auto& resource : kResources) sum.*resource.amount += more.*resource.amount;
}

void fill(SiteNumbers::Stage& to, const StageStatus& from) {
  to.connected = from.connected;
  to.late = from.late;
  to.silent = from.silent;
  to.late_cycles = from.late_cycles;
  to.lies = from.lies;
  to.refused_answers = from.refused_answers;
  to.not_applied = from.not_applied;
  to.problem = from.problem;
}

void fill(SiteNumbers::Stage& to, const SiteStages::Member& from) {
  const StageHello& hello = *from.hello;
  to.address = hello.address;
  to.program = hello.program;
  to.was_dialled = hello.was_dialled;
  to.is_aggregator = hello.is_aggregator;
  to.rules = from.has_newest        ? "in force"
             : from.is_asked        ? "asked"
             : from.problem.empty() ? "waiting"
                                    : "not taken";
  to.rules_problem = from.problem;
  to.rules_warnings = from.warnings;
}

}  // namespace

std::size_t SiteNumbers::connected() const {
  return static_cast<std::size_t>(std::ranges::count(stages, true, &Stage::connected));
}

void GrowingSums::add(const std::map<std::string, Counts>& now) {
  for (const auto& [name, counts] : now) {
    const auto before = last_.find(name);
    for (std::size_t i = 0; i < kCounters; ++i) {
      const bool goes_on = before != last_.end() && before->second[i] <= counts[i];
      sums_[i] += counts[i] - (goes_on ? before->second[i] : 0);
    }
  }
  last_ = now;
}

void add_stages(SiteNumbers& numbers, const CycleState& state, const SiteStages& stages) {
  std::map<std::string, SiteNumbers::Stage, std::less<>> by_name;
  const auto stage = [&](std::string_view name) -> SiteNumbers::Stage& {
    const auto place = by_name.find(name);
    if (place != by_name.end()) return place->second;
    return by_name.emplace(name, SiteNumbers::Stage{.name = std::string(name)}).first->second;
  };
  for (const AbsentStage& each : stages.absent()) {
    SiteNumbers::Stage& to = stage(each.name.empty() ? each.address : each.name);
    to.address = each.address;
    to.was_dialled = true;
  }
  state.for_each_stage([&](const StageStatus& each) { fill(stage(each.name), each); });
  for (const AbsentStage& each : stages.absent()) {
    SiteNumbers::Stage& to = stage(each.name.empty() ? each.address : each.name);
    if (!to.connected) to.problem = each.problem;
  }
  for (const SiteStages::Member& each : stages.members()) fill(stage(each.hello->name), each);
  const auto pairs = state.pairs();
  const auto grants = state.grants();
  for (std::size_t row = 0; row < pairs.size(); ++row) {
    const StageStatus* const whose = state.stage_of(row);
    if (whose == nullptr) continue;
    SiteNumbers::Stage& to = stage(whose->name);
    ++to.jobs;
    add(to.caps, grants[row]);
  }
  for (auto& [name, each] : by_name) numbers.stages.push_back(std::move(each));
}

void add_jobs(SiteNumbers& numbers, const CycleState& state) {
  const auto names = state.job_names();
  std::vector<SiteNumbers::Job> jobs(names.size());
  const auto pairs = state.pairs();
  const auto grants = state.grants();
  for (std::size_t row = 0; row < pairs.size(); ++row) {
    const Pair& pair = pairs[row];
    SiteNumbers::Job& to = jobs[pair.job];
    to.weight = pair.weight;
    to.most = pair.most;
    ++to.stages;
    add(to.granted, grants[row]);
    add(to.arrived, pair.arrived);
    to.done += pair.done;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].stages == 0) continue;
    jobs[i].name = names[i];
    numbers.jobs.push_back(std::move(jobs[i]));
  }
}

void add_totals(SiteNumbers& numbers, const allocation::TotalsWatch& totals) {
  for (SiteNumbers::Job& job : numbers.jobs) {
    const allocation::TotalsWatch::Verdict* const verdict = totals.verdict(job.name);
    if (verdict == nullptr) continue;
    const auto each_second = [verdict](Cost cost) {
      return static_cast<std::uint64_t>(static_cast<double>(cost) / in_seconds(verdict->span));
    };
    job.total = {.cost = each_second(verdict->done),
                 .entitled = each_second(verdict->entitled),
                 .is_reached = verdict->why == allocation::TotalsWatch::Why::reached,
                 .why = allocation::text_of(*verdict),
                 .remedy = std::string(allocation::remedy_of(*verdict)),
                 .stages = verdict->stages};
  }
}

}  // namespace vpfs::coordinator
