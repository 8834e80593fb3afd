#pragma once

#include <cstdint>

#include "base/check.h"
#include "schedulers/policy.h"

namespace vpfs {

// A first-in first-out list of borrowed requests, linked through the requests themselves. A request
// is in at most one list at a time.
class RequestList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  // nullptr: it is empty.
  [[nodiscard]] IoRequest* front() const { return first_; }
  [[nodiscard]] IoRequest* back() const { return last_; }

  void push_back(IoRequest& request) {
    VPFS_ASSERT(!request.queued);
    request.queued = true;
    request.next_queued = nullptr;
    request.previous_queued = last_;
    (last_ == nullptr ? first_ : last_->next_queued) = &request;
    last_ = &request;
  }

  // Takes a request out, wherever it is in the list.
  void remove(IoRequest& request) {
    VPFS_ASSERT(request.queued);
    IoRequest* const previous = request.previous_queued;
    IoRequest* const next = request.next_queued;
    (previous == nullptr ? first_ : previous->next_queued) = next;
    (next == nullptr ? last_ : next->previous_queued) = previous;
    request.next_queued = nullptr;
    request.previous_queued = nullptr;
    request.queued = false;
  }

 private:
  IoRequest* first_ = nullptr;
  IoRequest* last_ = nullptr;
};

// How much one flow has waiting and at the data server.
struct FlowAccount {
  std::uint32_t queued = 0;
  std::uint32_t outstanding = 0;

  void dispatched() {
    --queued;
    ++outstanding;
  }
  void completed() {
    VPFS_ASSERT(outstanding > 0);
    --outstanding;
  }
  [[nodiscard]] FlowState state(const IoRequest* oldest) const {
    return {.queued = queued, .outstanding = outstanding, .oldest = oldest};
  }
};

}  // namespace vpfs
