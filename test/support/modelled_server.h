#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// A data server in virtual time: `parallelism` requests are served at once, each taking a fixed
// time plus its cost at an equal part of the rate; further ones wait in the order of start().
// Requests are borrowed until finish_one() gives them back.
class ModelledServer {
 public:
  struct Settings {
    std::uint32_t parallelism = 1;
    std::uint64_t cost_per_second = 400 * kMiB;
    Duration per_request = Duration::zero();
  };

  struct Finished {
    IoRequest* request;
    Cost cost;  // what was really done
  };

  explicit ModelledServer(Settings settings) : settings_(settings) {}

  // `cost`: what the request will turn out to be.
  void start(IoRequest& request, Cost cost, TimePoint now) {
    waiting_.push_back({.request = &request, .cost = cost, .end = {}});
    fill(now);
  }
  // When the next request will be finished; nothing when idle.
  [[nodiscard]] std::optional<TimePoint> next_finish() const {
    if (active_.empty()) return std::nullopt;
    return earliest()->end;
  }
  // Takes out the request that next_finish() spoke of. REQUIRES: not idle; now == next_finish().
  Finished finish_one(TimePoint now) {
    const auto first = active_.begin() + (earliest() - active_.cbegin());
    const Finished finished = {.request = first->request, .cost = first->cost};
    active_.erase(first);
    fill(now);
    return finished;
  }

 private:
  struct Job {
    IoRequest* request;
    Cost cost;
    TimePoint end;
  };

  [[nodiscard]] std::vector<Job>::const_iterator earliest() const {
    return std::ranges::min_element(active_, {}, &Job::end);
  }
  void fill(TimePoint now) {
    while (!waiting_.empty() && active_.size() < settings_.parallelism) {
      Job job = waiting_.front();
      waiting_.pop_front();
      const double seconds = static_cast<double>(job.cost) * settings_.parallelism /
                             static_cast<double>(settings_.cost_per_second);
      job.end = now + settings_.per_request + Duration(static_cast<std::int64_t>(seconds * 1e9));
      active_.push_back(job);
    }
  }

  Settings settings_;
  std::deque<Job> waiting_;
  std::vector<Job> active_;
};

}  // namespace vpfs
