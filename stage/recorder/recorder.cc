#include "stage/recorder/recorder.h"

namespace vpfs::stage {

Recorder::Recorder(const Settings& settings)
    : settings_(settings),
      ring_(settings.requests),
      names_{""},
      origins_{{}},
      origin_numbers_(0, Hash{.jobs = TextHash(settings.seed)}) {
  // A table that grows makes the requests of a moment wait.
  names_.reserve(kMostNames);
  origins_.reserve(kMostNames);
  origin_numbers_.reserve(kMostNames);
  origin_numbers_.emplace(Origin(), 0);
  jobs_.reserve(kMostNames);
}

std::uint32_t Recorder::add_name(Flow id, const std::string& name) {
  const auto app = static_cast<std::size_t>(id.app);
  if (app >= known_.size()) known_.resize(app + 1);
  std::uint32_t number = kOther;
  if (names_.size() >= kMostNames) {
    is_full_ = true;
  } else {
    number = static_cast<std::uint32_t>(names_.size());
    names_.push_back(name);
  }
  known_[app] = {.generation = id.generation, .name = number};
  return number;
}

std::uint32_t Recorder::number_of(const Origin& origin) {
  if (const auto found = origin_numbers_.find(origin); found != origin_numbers_.end()) {
    return found->second;
  }
  if (!origin.jobid.empty()) {
    const auto jobs = jobs_.find(origin.connection);
    if (jobs != jobs_.end() && jobs->second >= kMostJobs) {
      is_full_ = true;
      return number_of({.connection = origin.connection, .client = origin.client, .jobid = ""});
    }
  }
  // The last place is for all that come after it.
  if (origins_.size() + 1 < kMostNames) return add(origin);
  is_full_ = true;
  if (origins_.size() < kMostNames) origins_.emplace_back();
  return static_cast<std::uint32_t>(kMostNames - 1);
}

std::uint32_t Recorder::add(const Origin& origin) {
  const auto number = static_cast<std::uint32_t>(origins_.size());
  origins_.push_back(origin);
  origin_numbers_.emplace(origin, number);
  if (!origin.jobid.empty()) ++jobs_[origin.connection];
  return number;
}

std::size_t Recorder::Hash::operator()(const Origin& origin) const {
  return jobs(origin.jobid) ^ (origin.connection * 0x9e3779b97f4a7c15U);
}

}  // namespace vpfs::stage
