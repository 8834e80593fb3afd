#include "control/allocation/totals_watch.h"

#include <algorithm>

namespace vpfs::allocation {
namespace {

// A longer list of names would not help a reader.
constexpr std::size_t kMostNamed = 4;

double seconds_of(Microseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

// For how long requests of the pair waited while its stage was crowded.
Microseconds queued(const QueueTimes& times) {
  return times.crowded - std::min(times.without_queue, times.crowded);
}

Microseconds since(Microseconds now, Microseconds before) {
  return now - std::min(before, now);
}

}  // namespace

bool TotalsWatch::Job::had_more_than(const Job& other) const {
  return static_cast<double>(done) / weight > 1.1 * static_cast<double>(other.done) / other.weight;
}

void TotalsWatch::look(std::span<const Pair> pairs, std::span<const std::string_view> jobs,
                       const StageName& stage_name, TimePoint now) {
  if (begin_ && now - *begin_ < kSpan) return;
  if (begin_) judge(pairs, jobs, stage_name, now - *begin_);
  begin_ = now;
  remember(pairs);
}

const TotalsWatch::Verdict* TotalsWatch::verdict(std::string_view job) const {
  const auto found = verdicts_.find(job);
  return found == verdicts_.end() ? nullptr : &found->second;
}

void TotalsWatch::remember(std::span<const Pair> pairs) {
  std::ranges::fill(bases_, Base{});
  for (const Pair& pair : pairs) {
    if (pair.id >= bases_.size()) bases_.resize(std::size_t{pair.id} + 1);
    bases_[pair.id] = {.done = pair.done, .times = pair.times};
  }
}

void TotalsWatch::subtract(std::span<const Pair> pairs, Duration span) {
  parts_.assign(pairs.size(), {});
  jobs_.clear();
  on_stage_.clear();
  for (std::uint32_t row = 0; row < pairs.size(); ++row) {
    const Pair& pair = pairs[row];
    // A number that is another pair's now began again at zero.
    Base base;
    if (pair.id < bases_.size() && bases_[pair.id].done <= pair.done) base = bases_[pair.id];
    Part& part = parts_[row];
    part.done = pair.done - base.done;
    part.times = {.limited = since(pair.times.limited, base.times.limited),
                  .present = since(pair.times.present, base.times.present),
                  .crowded = since(pair.times.crowded, base.times.crowded),
                  .without_queue = since(pair.times.without_queue, base.times.without_queue)};
    part.is_in_flight = seconds_of(part.times.present) >= in_seconds(span) / 2;
    if (pair.job >= jobs_.size()) jobs_.resize(std::size_t{pair.job} + 1);
    Job& job = jobs_[pair.job];
    job.weight = pair.weight;
    job.is_judged |= part.is_in_flight;
    job.done += part.done;
    if (pair.stage >= on_stage_.size()) on_stage_.resize(std::size_t{pair.stage} + 1);
    on_stage_[pair.stage].push_back(row);
  }
}

void TotalsWatch::judge(std::span<const Pair> pairs, std::span<const std::string_view> jobs,
                        const StageName& stage_name, Duration span) {
  subtract(pairs, span);
  verdicts_.clear();
  double cost = 0;
  double weight = 0;
  for (const Job& job : jobs_) {
    if (!job.is_judged) continue;
    cost += static_cast<double>(job.done);
    weight += job.weight;
  }
  for_each_job(pairs, [&](std::size_t first, std::size_t count) {
    const Job& job = jobs_[pairs[first].job];
    if (!job.is_judged) return;
    Verdict& verdict = verdicts_[std::string(jobs[pairs[first].job])];
    verdict.span = span;
    verdict.done = job.done;
    verdict.entitled = static_cast<Cost>(cost * job.weight / weight);
    explain(pairs, first, first + count, stage_name, verdict);
  });
}

void TotalsWatch::explain(std::span<const Pair> pairs, std::size_t first, std::size_t end,
                          const StageName& stage_name, Verdict& verdict) const {
  const Job& job = jobs_[pairs[first].job];
  if (static_cast<double>(job.done) >= 0.95 * static_cast<double>(verdict.entitled)) return;
  double limited = 0;
  double present = 0;
  double waited = 0;
  double of_others = 0;
  double of_better = 0;
  std::vector<std::size_t> without_queue;
  std::vector<std::size_t> with_queue;
  for (std::size_t row = first; row < end; ++row) {
    const Part& part = parts_[row];
    limited += seconds_of(part.times.limited);
    present += seconds_of(part.times.present);
    waited += seconds_of(queued(part.times));
    if (!part.is_in_flight) continue;
    double of_better_here = 0;
    for (const std::uint32_t other : on_stage_[pairs[row].stage]) {
      if (pairs[other].job == pairs[row].job) continue;
      const auto done = static_cast<double>(parts_[other].done);
      of_others += done;
      if (jobs_[pairs[other].job].had_more_than(job)) of_better_here += done;
    }
    of_better += of_better_here;
    if (of_better_here == 0) continue;
    const bool has_queue = seconds_of(queued(part.times)) >= 0.9 * seconds_of(part.times.present);
    (has_queue ? with_queue : without_queue).push_back(row);
  }
  const double matters = static_cast<double>(job.done) / 20;
  const auto name = [&](const std::vector<std::size_t>& rows) {
    for (const std::size_t row : rows) verdict.stages.emplace_back(stage_name(row));
  };
  if (limited >= present / 2) {
    verdict.why = Why::limit;
  } else if (of_better > matters) {
    verdict.why = without_queue.empty() ? Why::delay : Why::no_queue;
    name(without_queue.empty() ? with_queue : without_queue);
  } else {
    const bool has_rivals = of_others > matters || waited >= present / 2;
    verdict.why = has_rivals ? Why::no_capacity : Why::asks_for_no_more;
  }
}

std::string text_of(const TotalsWatch::Verdict& verdict) {
  using enum TotalsWatch::Why;
  const auto at_stages = [&](std::string text) {
    for (std::size_t i = 0; i < std::min(kMostNamed, verdict.stages.size()); ++i) {
      text += (i == 0 ? " at " : ", ") + verdict.stages[i];
    }
    if (verdict.stages.size() <= kMostNamed) return text;
    return text + " and " + std::to_string(verdict.stages.size() - kMostNamed) + " more";
  };
  switch (verdict.why) {
    case reached:
      return "";
    case limit:
      return "its limit";
    case no_queue:
      return at_stages("keeps no queue");
    case delay:
      return at_stages("others wait no longer for it");
    case no_capacity:
      return "no server of it has more capacity";
    case asks_for_no_more:
      break;
  }
  return "asks for no more";
}

std::string_view remedy_of(const TotalsWatch::Verdict& verdict) {
  using enum TotalsWatch::Why;
  switch (verdict.why) {
    case limit:
      return "more total_rate or rate";
    case no_queue:
      return "sfq.anticipation unless it is on, more requests in flight, or a smaller "
             "depth.requests";
    case delay:
      return "a longer control.longest_delay";
    case no_capacity:
      return "files on more servers";
    case asks_for_no_more:
      return "more requests in flight";
    case reached:
      break;
  }
  return "";
}

}  // namespace vpfs::allocation
