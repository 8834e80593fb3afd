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
  if (origins_.size() >= kMostNames) {
    is_full_ = true;
    return kOther;
  }
  const auto number = static_cast<std::uint32_t>(origins_.size());
  origins_.push_back(origin);
  origin_numbers_.emplace(origin, number);
  return number;
}

std::size_t Recorder::Hash::operator()(const Origin& origin) const {
  return jobs(origin.jobid) ^ (origin.connection * 0x9e3779b97f4a7c15U);
}

}  // namespace vpfs::stage
