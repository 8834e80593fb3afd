#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/io_kind.h"
#include "base/units.h"

namespace vpfs {

// A flow of a scheduler: one virtual PFS. Dense small integers, handed out by the stage's table of
// virtual PFSes, so that schedulers index arrays with them.
enum class AppId : std::uint32_t {};

// What a request takes from the data server, in byte-equivalents (see CostModel).
using Cost = std::uint64_t;
// The largest cost that schedulers accept for one request; CostModel never makes a larger one.
inline constexpr Cost kMaxCost = Cost{1} << 40;

// One I/O that waits for the data server or is at it. The session owns it and keeps it in place
// from enqueue() until complete() or withdraw(); Schedulers link it into their queues through the
// fields at the end; others may only read `sent`. It fits into one cache line.
struct alignas(64) IoRequest {
  AppId app = {};
  IoKind kind = IoKind::read;
  std::uint8_t traffic_class = 0;  // index into the scheduler's classes
  bool queued = false;             // the scheduler's own, like those from next_queued on
  bool passed_limit = false;       // left although a coordinator's limit did not allow it yet
  Bytes size = {};                 // what the server will move at most
  Cost cost = 0;                   // of `size`; 1 <= cost <= kMaxCost
  TimePoint arrival = {};          // not after enqueue()

  IoRequest* next_queued = nullptr;
  union {
    IoRequest* previous_queued;  // while queued
    TimePoint sent = {};         // from when next() gave it out
  };
  std::uint64_t order = 0;  // arrival order, breaks ties
  std::uint64_t tag = 0;    // policy's own: cost / weight for SFQ, the deadline for EDF
};
static_assert(sizeof(IoRequest) == 64);

}  // namespace vpfs
