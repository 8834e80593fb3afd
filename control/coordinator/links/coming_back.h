#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/coordinator/links/stage_requests.h"

namespace vpfs::coordinator {

// Stages whose connection has ended a moment ago, and questions that wait for them. Where a new
// process takes over from another, the stage is back within milliseconds.
class ComingBack {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);
  using Back = StageRequests::Back;

  void left(const std::string& name, TimePoint now) { stages_[name].until = now + kPatience; }
  // Those that may come back. None if they are many: that is a fault, and no new processes.
  static constexpr std::size_t kMost = 64;
  [[nodiscard]] std::vector<std::string> names() const;
  void wait(const std::string& name, TimePoint now, Back back) {
    stages_.try_emplace(name, Stage{.until = now + kPatience, .waiting = {}})
        .first->second.waiting.push_back(std::move(back));
  }
  // Returns what waited for it.
  [[nodiscard]] std::vector<Back> joined(const std::string& name);
  // The same for those that have not come in time.
  [[nodiscard]] std::vector<Back> give_up(TimePoint now);

 private:
  struct Stage {
    TimePoint until;
    std::vector<Back> waiting;
  };
  std::map<std::string, Stage> stages_;
};

}  // namespace vpfs::coordinator
