#include "fuse/posix/interrupted_requests.h"

namespace vpfs::fuse {
namespace {

// A request is on its way for microseconds, but the thread that carries it may have no processor.
constexpr unsigned kMostTimesMissing = 20;

}  // namespace

void InterruptedRequests::put(const Entry& entry, const Finding& finding) {
  switch (finding.state) {
    case Finding::State::over:
      return;
    case Finding::State::waits:
      return put(finding.uid, {.unique = entry.unique});
    case Finding::State::missing:
      if (entry.times_missing == kMostTimesMissing) return;
      return put(kUnknown, {.unique = entry.unique, .times_missing = entry.times_missing + 1});
  }
}

void InterruptedRequests::put(std::uint64_t user, const Entry& entry) {
  std::deque<Entry>& queue = queues_[user];
  if (queue.empty()) turns_.push_back(user);
  if (user == kUnknown && queue.size() == kMostMissing) {
    queue.pop_front();
    --size_;
  }
  queue.push_back(entry);
  ++size_;
}

std::optional<InterruptedRequests::Entry> InterruptedRequests::take() {
  if (turns_.empty()) return std::nullopt;
  const std::uint64_t user = turns_.front();
  turns_.pop_front();
  const auto place = queues_.find(user);
  const Entry entry = place->second.front();
  place->second.pop_front();
  --size_;
  if (place->second.empty()) {
    queues_.erase(place);
  } else {
    turns_.push_back(user);
  }
  return entry;
}

std::vector<std::uint64_t> InterruptedRequests::numbers() const {
  std::vector<std::uint64_t> all;
  for (const auto& [user, queue] : queues_) {
    for (const Entry& each : queue) all.push_back(each.unique);
  }
  return all;
}

}  // namespace vpfs::fuse
