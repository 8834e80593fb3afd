#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"
#include "stage/history/history.h"
#include "stage/place.h"

namespace vpfs::insight {

// What virtual PFSes were entitled to in the last second, by weights, limits, minimums and what a
// coordinator says of service elsewhere.
class EntitlementWatch {
 public:
  // Judges the time since the last call, in which virtual PFSes did `activities`. `by_weight`: the
  // policy divides the server by weights and nothing else does.
  void judge(std::span<const stage::Activity> activities, Duration length, bool by_weight);

  // Cost each second. Nothing: weights did not divide the server, or it did nothing.
  [[nodiscard]] std::optional<Cost> entitled(stage::VirtualPfsId id) const;
  // Weights divide the server, and would have, but nothing waited for another.
  [[nodiscard]] bool was_idle() const { return was_idle_; }

 private:
  struct Row {
    stage::VirtualPfsId id;
    Cost elsewhere = 0;            // the sum that was read last
    std::uint64_t call = 0;        // that read it
    std::optional<Cost> entitled;  // each second
  };

  std::vector<Row> rows_;  // by AppId
  std::uint64_t calls_ = 0;
  bool was_idle_ = false;
};

}  // namespace vpfs::insight
