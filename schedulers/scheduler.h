#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs {

// A flow's part of the data server, relative to the other flows' weights.
struct Share {
  std::uint32_t weight = 1;  // 1 ... kMaxWeight

  static constexpr std::uint32_t kMaxWeight = 1'000'000;
};

// How much may be outstanding at the data server at once. Whichever limit is reached first holds;
// one request is always let through when nothing is outstanding, however large it is.
struct Depth {
  std::uint32_t requests = 16;  // at least 1
  Cost cost = UINT64_MAX;       // the sum of costs
};

// Decides which queued request goes to the data server next.
//
// A Scheduler is a data structure: it owns no thread, takes no lock and reads no clock. The
// dispatcher calls it under its own lock and passes the time of the current loop turn, which never
// goes back. Requests are borrowed: every request given to enqueue() leaves exactly once,
// through next() or withdraw(); one that left through next() is outstanding until complete().
// Nothing here allocates once a flow has been seen.
class Scheduler {
 public:
  // The answer of next(). Without a request nothing may be sent now: ask again after enqueue() or
  // complete(), or at `until` if that is set.
  struct Decision {
    IoRequest* request = nullptr;
    std::optional<TimePoint> until = std::nullopt;
  };
  struct FlowState {
    std::size_t queued = 0;
    Cost queued_cost = 0;
    std::size_t outstanding = 0;
    Cost outstanding_cost = 0;
    const IoRequest* oldest = nullptr;  // the head of the flow's queue
  };
  // Why a flow's head request has not been sent. `eligible` is set where the wait is for a time.
  struct WaitReason {
    std::string_view reason;  // a static text
    std::optional<TimePoint> eligible = std::nullopt;
  };

  virtual ~Scheduler() = default;

  // REQUIRES: the request is not queued here; its app has been given to set_share().
  virtual void enqueue(IoRequest& request, TimePoint now) = 0;
  [[nodiscard]] virtual Decision next(TimePoint now) = 0;

  // The data server is done with a request that next() gave out. `cost` is what it really did,
  // at most request.cost (a read at the end of a file does less).
  virtual void complete(const IoRequest& request, Cost cost, TimePoint now) = 0;

  // Takes a queued request back (deadline passed, client gone). It is not charged.
  virtual void withdraw(IoRequest& request, TimePoint now) = 0;

  // Adds a flow or changes its share; applies to requests that arrive from then on.
  virtual void set_share(AppId app, Share share) = 0;

  // For status; not on the hot path.
  [[nodiscard]] virtual FlowState flow(AppId app) const = 0;
  // Empty reason when the flow has nothing queued.
  [[nodiscard]] virtual WaitReason why_waiting(AppId app, TimePoint now) const = 0;
  [[nodiscard]] virtual std::size_t outstanding() const = 0;
  [[nodiscard]] virtual std::size_t queued() const = 0;
};

}  // namespace vpfs
