#include "schedulers/fifo.h"

#include <utility>

#include "base/check.h"

namespace vpfs {

FlowAccount& Fifo::account_of(const IoRequest& request) {
  const auto index = std::to_underlying(request.app);
  VPFS_ASSERT(index < accounts_.size());
  return accounts_[index];
}

void Fifo::set_share(AppId app, Share /*share*/) {
  const auto index = std::to_underlying(app);
  if (index >= accounts_.size()) accounts_.resize(std::size_t{index} + 1);
}

void Fifo::enqueue(IoRequest& request, TimePoint /*now*/) {
  FlowAccount& account = account_of(request);
  request.order = arrivals_++;
  queue_.push_back(request);
  account.enqueued(request.cost);
  ++queued_;
}

Scheduler::Decision Fifo::next(TimePoint /*now*/) {
  IoRequest* const request = queue_.front();
  if (request == nullptr || !gate_.admits(request->cost)) return {};
  queue_.remove(*request);
  gate_.start(request->cost);
  account_of(*request).dispatched(request->cost);
  --queued_;
  return {.request = request};
}

void Fifo::complete(const IoRequest& request, Cost /*cost*/, TimePoint /*now*/) {
  gate_.finish(request.cost);
  account_of(request).completed(request.cost);
}

void Fifo::withdraw(IoRequest& request, TimePoint /*now*/) {
  queue_.remove(request);
  account_of(request).withdrawn(request.cost);
  --queued_;
}

const IoRequest* Fifo::oldest_of(AppId app) const {
  const IoRequest* request = queue_.front();
  while (request != nullptr && request->app != app) request = request->next_queued;
  return request;
}

Scheduler::FlowState Fifo::flow(AppId app) const {
  const auto index = std::to_underlying(app);
  if (index >= accounts_.size()) return {};
  return accounts_[index].state(oldest_of(app));
}

Scheduler::WaitReason Fifo::why_waiting(AppId app, TimePoint /*now*/) const {
  const IoRequest* const oldest = oldest_of(app);
  if (oldest == nullptr) return {};
  const std::string_view full = gate_.reason(queue_.front()->cost);
  if (!full.empty()) return {.reason = full};
  return {.reason = oldest == queue_.front() ? kIsNext : "requests that came earlier go first"};
}

}  // namespace vpfs
