#pragma once

#include <optional>

#include "base/clock.h"
#include "tools/load/run_end.h"
#include "tools/load/settings.h"

namespace vpfs::load {

// When an application may begin a request: between its start and stop, in its bursts. Times count
// from the beginning of the run.
class Schedule {
 public:
  // `end` outlives it.
  Schedule(const ApplicationSettings& application, const RunEnd& end);

  // The earliest time from `now` on; empty when none is left.
  [[nodiscard]] std::optional<Duration> next(Duration now) const;

 private:
  Duration start_;
  Duration stop_;
  const RunEnd& end_;
  std::optional<Burst> burst_;
};

}  // namespace vpfs::load
