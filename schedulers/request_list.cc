#include "schedulers/request_list.h"

#include "base/check.h"

namespace vpfs {

void RequestList::push_back(IoRequest& request) {
  VPFS_ASSERT(!request.queued);
  request.queued = true;
  request.next_queued = nullptr;
  request.previous_queued = last_;
  (last_ == nullptr ? first_ : last_->next_queued) = &request;
  last_ = &request;
}

void RequestList::remove(IoRequest& request) {
  VPFS_ASSERT(request.queued);
  IoRequest* const previous = request.previous_queued;
  IoRequest* const next = request.next_queued;
  (previous == nullptr ? first_ : previous->next_queued) = next;
  (next == nullptr ? last_ : next->previous_queued) = previous;
  request.next_queued = nullptr;
  request.previous_queued = nullptr;
  request.queued = false;
}

void FlowAccount::completed(Cost cost) {
  VPFS_ASSERT(outstanding > 0 && outstanding_cost >= cost);
  --outstanding;
  outstanding_cost -= cost;
}

Scheduler::FlowState FlowAccount::state(const IoRequest* oldest) const {
  return {.queued = queued,
          .queued_cost = queued_cost,
          .outstanding = outstanding,
          .outstanding_cost = outstanding_cost,
          .oldest = oldest};
}

}  // namespace vpfs
