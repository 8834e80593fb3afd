#include "control/allocation/membership.h"

#include <utility>

#include "base/check.h"

namespace vpfs::allocation {
namespace {

std::uint64_t members(std::uint32_t job, std::uint32_t stage) {
  return std::uint64_t{job} << 32U | stage;
}

// A number that is free, else a new one at the end.
template <typename Row>
std::uint32_t take_number(std::vector<std::uint32_t>& free, std::vector<Row>& rows) {
  if (free.empty()) {
    rows.emplace_back();
    return static_cast<std::uint32_t>(rows.size() - 1);
  }
  const std::uint32_t number = free.back();
  free.pop_back();
  return number;
}

}  // namespace

Membership::Job& Membership::find_or_make_job(std::string_view name, std::uint32_t& number) {
  auto found = job_by_name_.find(name);
  if (found == job_by_name_.end()) {
    found = job_by_name_.emplace(name, take_number(free_jobs_, jobs_)).first;
    Job& job = jobs_[found->second];
    job = {.name = found->first, .generation = job.generation};
  }
  number = found->second;
  return jobs_[number];
}

std::optional<std::uint32_t> Membership::find_job(std::string_view name) const {
  const auto found = job_by_name_.find(name);
  return found == job_by_name_.end() ? std::nullopt : std::optional(found->second);
}

void Membership::drop_job_if_unused(std::uint32_t number) {
  const Job& job = jobs_[number];
  if (job.is_configured || job.pairs > 0) return;
  job_by_name_.erase(job_by_name_.find(job.name));
  jobs_[number] = {.generation = job.generation};
  free_jobs_.push_back(number);
}

std::uint32_t Membership::find_or_make_stage(std::string_view name) {
  auto found = stage_by_name_.find(name);
  if (found == stage_by_name_.end()) {
    found = stage_by_name_.emplace(name, take_number(free_stages_, stages_)).first;
    Stage& stage = stages_[found->second];
    stage.is_known = true;
    stage.status.name = found->first;
  }
  return found->second;
}

void Membership::forget_stage(std::uint32_t number) {
  Stage& stage = stages_[number];
  VPFS_ASSERT(stage.pairs.empty());
  stage_by_name_.erase(stage_by_name_.find(stage.status.name));
  stage = {};
  free_stages_.push_back(number);
}

std::uint32_t Membership::find_or_make_pair(std::uint32_t job, std::uint32_t stage) {
  if (const std::uint32_t* found = pair_by_members_.find(members(job, stage))) return *found;
  const std::uint32_t pair = take_number(free_pairs_, pairs_);
  std::vector<std::uint32_t>& list = stages_[stage].pairs;
  pairs_[pair] = {.job = job, .stage = stage, .place = static_cast<std::uint32_t>(list.size())};
  list.push_back(pair);
  if (jobs_[job].pairs++ == 0) {
    ++jobs_[job].generation;
    jobs_[job].totals = {};
    jobs_[job].limited = {};
  }
  (void)pair_by_members_.insert(members(job, stage), pair);
  return pair;
}

// The last one of the list moves into the gap.
void Membership::forget_pair(std::uint32_t pair) {
  const PairRecord record = std::exchange(pairs_[pair], {});
  std::vector<std::uint32_t>& list = stages_[record.stage].pairs;
  const std::uint32_t last = list.back();
  list[record.place] = last;
  if (last != pair) pairs_[last].place = record.place;
  list.pop_back();
  pair_by_members_.erase(members(record.job, record.stage));
  --jobs_[record.job].pairs;
  drop_job_if_unused(record.job);
  forgotten_pairs_.push_back(pair);
}

void Membership::release_numbers() {
  free_pairs_.insert(free_pairs_.end(), forgotten_pairs_.begin(), forgotten_pairs_.end());
  forgotten_pairs_.clear();
}

void Membership::rank() {
  job_texts_.clear();
  for (const auto& [name, number] : job_by_name_) {
    jobs_[number].rank = static_cast<std::uint32_t>(job_texts_.size());
    job_texts_.push_back(name);
  }
  job_names_.assign(job_texts_.begin(), job_texts_.end());
  ranked_stages_.clear();
  std::uint32_t rank = 0;
  for (const auto& [name, number] : stage_by_name_) {
    Stage& stage = stages_[number];
    stage.rank = rank++;
    if (stage.takes_part()) ranked_stages_.push_back(number);
  }
}

}  // namespace vpfs::allocation
