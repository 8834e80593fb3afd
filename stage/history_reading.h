#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/histogram.h"
#include "schedulers/loans.h"
#include "schedulers/request.h"
#include "stage/place.h"
#include "stage/virtual_pfs.h"

namespace vpfs::stage {

// What a history needs of one virtual PFS that was used lately: sums since its beginning, and some
// values of now. See Stage::read_history().
struct HistoryReading {
  VirtualPfsId id;
  std::shared_ptr<const VirtualPfsInfo> info;
  std::shared_ptr<const std::string> rule;  // of its last request; nothing: that rule is gone
  std::string jobid;                        // that all its requests have shown
  std::string account;                      // of that job, if it is registered with one

  // Sums.
  Bytes read;
  Bytes written;
  std::uint64_t done = 0;     // requests, metadata among them
  std::uint64_t arrived = 0;  // requests
  Cost cost = 0;              // sent
  Cost cost_done = 0;
  Cost elsewhere = 0;             // done by other stages, as a coordinator says
  std::uint64_t unscheduled = 0;  // requests
  LongDuration waited = {};       // of all requests that were sent
  LongDuration served = {};       // of those that ended
  HoldTimes held;
  Loans loans;
  Duration slow_client = {};

  // Since the last reading:
  Duration longest_wait = {};  // with the oldest request that is queued
  Cost largest = 0;            // of a request

  // At this time:
  BytesPerSecond limit;         // the lower of its own and a coordinator's; 0: none
  bool keeps_no_queue = false;  // so it misses its share
  TimePoint at = {};            // of the stage
  TimePoint oldest = kNever;    // arrival of the oldest request that is queued
  Bytes queued;
};

}  // namespace vpfs::stage
