#include "sim/proxies/replay/closed_loops.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

namespace vpfs::sim {
namespace {

// A loop that has ended its last request this long before the end has ended, unless its requests
// take longer.
constexpr Duration kPause = std::chrono::seconds(1);

// The loops of one source.
class Source {
 public:
  Source(std::vector<ClosedLoop>& loops, std::uint32_t source) : loops_(loops), source_(source) {}

  // What of `unknown` has ended may have been of this source.
  void follow(Source* unknown) { unknown_ = unknown; }

  void add(const RecordedIo& io) {
    std::optional<std::size_t> loop = take_idle(io.arrival);
    // What was under way when the recording began was of one of the sources that are known later.
    if (!loop && unknown_ != nullptr) loop = unknown_->take_idle(io.arrival);
    if (!loop) {
      loop = loops_.size();
      loops_.emplace_back();
    }
    ClosedLoop& its = loops_[*loop];
    its.source = source_;
    const bool is_first = its.steps.empty();
    const TimePoint before = is_first ? TimePoint() : its.last_end;
    its.steps.push_back({.think = std::max(io.arrival - before, Duration::zero()),
                         .kind = io.kind,
                         .size = io.size});
    its.longest_step = std::max(its.longest_step, io.end - (is_first ? io.arrival : before));
    its.last_end = io.end;
    under_way_.emplace(io.end, *loop);
  }

 private:
  using End = std::pair<TimePoint, std::size_t>;  // of the last request of a loop

  // The loop that has ended its request last.
  std::optional<std::size_t> take_idle(TimePoint now) {
    while (!under_way_.empty() && under_way_.top().first <= now) {
      idle_.push_back(under_way_.top().second);
      under_way_.pop();
    }
    if (idle_.empty()) return std::nullopt;
    const std::size_t loop = idle_.back();
    idle_.pop_back();
    return loop;
  }

  std::vector<ClosedLoop>& loops_;
  std::uint32_t source_;
  Source* unknown_ = nullptr;
  std::priority_queue<End, std::vector<End>, std::greater<>> under_way_;
  std::vector<std::size_t> idle_;  // by the ends of their requests
};

// Those of `load`, in its order.
std::deque<Source> sources_of(const RecordedLoad& load, std::vector<ClosedLoop>& loops) {
  std::deque<Source> sources;
  std::map<std::string, Source*> unknown;
  for (std::uint32_t i = 0; i < load.sources.size(); ++i) {
    Source& source = sources.emplace_back(loops, i);
    const RecordedSource& recorded = load.sources[i];
    if (recorded.is_unknown && !recorded.is_one_of_many) unknown[recorded.virtual_pfs] = &source;
  }
  for (std::uint32_t i = 0; i < load.sources.size(); ++i) {
    const auto found = unknown.find(load.sources[i].virtual_pfs);
    if (found != unknown.end() && found->second != &sources[i]) sources[i].follow(found->second);
  }
  return sources;
}

}  // namespace

std::vector<ClosedLoop> closed_loops(const RecordedLoad& load) {
  std::vector<ClosedLoop> loops;
  std::deque<Source> sources = sources_of(load, loops);
  for (const RecordedIo& io : load.requests) sources[io.source].add(io);

  for (ClosedLoop& loop : loops) {
    const Duration pause = TimePoint() + load.length - loop.last_end;
    // One request tells nothing of when the next one would come.
    loop.goes_on = loop.steps.size() > 1 && pause < std::max(kPause, 2 * loop.longest_step);
    Duration sum = {};
    for (std::size_t i = 1; i < loop.steps.size(); ++i) sum += loop.steps[i].think;
    if (loop.steps.size() > 1) {
      loop.mean_think = sum / static_cast<std::int64_t>(loop.steps.size() - 1);
    }
  }
  return loops;
}

}  // namespace vpfs::sim
