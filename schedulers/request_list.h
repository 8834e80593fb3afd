#pragma once

#include <cstdint>

#include "schedulers/scheduler.h"

namespace vpfs {

// A first-in first-out list of borrowed requests, linked through the requests themselves. A request
// is in at most one list at a time.
class RequestList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  [[nodiscard]] IoRequest* front() const { return first_; }
  void push_back(IoRequest& request);
  // Takes a request out, wherever it stands.
  void remove(IoRequest& request);

 private:
  IoRequest* first_ = nullptr;
  IoRequest* last_ = nullptr;
};

// What one flow has waiting and at the data server.
struct FlowAccount {
  std::uint32_t queued = 0;
  std::uint32_t outstanding = 0;
  Cost queued_cost = 0;
  Cost outstanding_cost = 0;

  void enqueued(Cost cost) {
    ++queued;
    queued_cost += cost;
  }
  void withdrawn(Cost cost) {
    --queued;
    queued_cost -= cost;
  }
  void dispatched(Cost cost) {
    withdrawn(cost);
    ++outstanding;
    outstanding_cost += cost;
  }
  // `cost` as it was given to dispatched().
  void completed(Cost cost);
  [[nodiscard]] Scheduler::FlowState state(const IoRequest* oldest) const;
};

}  // namespace vpfs
