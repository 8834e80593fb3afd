#include "control/coordinator/links/coming_back.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vpfs::coordinator {

std::vector<std::string> ComingBack::names() const {
  std::vector<std::string> names;
  if (stages_.size() > kMost) return names;
  names.reserve(stages_.size());
  for (const auto& [name, stage] : stages_) names.push_back(name);
  return names;
}

std::vector<ComingBack::Back> ComingBack::joined(const std::string& name) {
  const auto found = stages_.find(name);
  if (found == stages_.end()) return {};
  std::vector<Back> waiting = std::move(found->second.waiting);
  stages_.erase(found);
  return waiting;
}

std::vector<ComingBack::Back> ComingBack::give_up(TimePoint now) {
  std::vector<Back> waiting;
  for (auto each = stages_.begin(); each != stages_.end();) {
    if (now < each->second.until) {
      ++each;
      continue;
    }
    std::ranges::move(each->second.waiting, std::back_inserter(waiting));
    each = stages_.erase(each);
  }
  return waiting;
}

}  // namespace vpfs::coordinator
