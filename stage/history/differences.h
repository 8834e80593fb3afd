#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stage/history/history.h"
#include "stage/history_reading.h"

namespace vpfs::stage {

// Turns sums since the beginning of virtual PFSes into what each did since the reading before.
class ReadingDifferences {
 public:
  // Those of `readings` that did something, or wait for something. A virtual PFS that is read for
  // the first time began after the reading before. The first call only remembers. The result refers
  // to `readings`.
  [[nodiscard]] std::vector<Activity> since_last(std::span<const HistoryReading> readings);

 private:
  struct Known {
    VirtualPfsId id;
    bool is_known = false;
    Measures sums;
    Loans loans;
  };

  std::vector<Known> known_;  // by AppId
  bool has_begun_ = false;
};

}  // namespace vpfs::stage
