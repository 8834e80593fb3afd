#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "stage/stage.h"

namespace vpfs::control {

// The stage of an owner, under the owner's lock. Any thread may call.
class StageAccess {
 public:
  using Visitor = std::function<void(stage::Stage& stage, TimePoint now)>;

  virtual ~StageAccess() = default;
  // Calls `visit` with the lock held. The visitor only copies, for a few microseconds at most.
  virtual void inspect(const Visitor& visit) = 0;
  // Between two calls of inspect(): lets other threads have the lock if they wait for it.
  virtual void give_way() = 0;
  // Copies all counters, a block of rows for each time that it takes the lock. See
  // stage::Stage::copy_counters() for the rows.
  virtual void copy_counters(std::vector<stage::CounterRow>& rows) = 0;
};

}  // namespace vpfs::control
