#include "schedulers/policies/fifo.h"

#include <utility>

#include "base/check.h"

namespace vpfs {

namespace {
// In the queue, for the oldest request of a flow.
constexpr int kMostLooked = 64;

std::unique_ptr<Policy> make_fifo(const SchedulerSettings&, RateLimits&, Scheduler::Part) {
  return std::make_unique<Fifo>();
}
}  // namespace

constinit const PolicyKind Fifo::kKind = {.name = "fifo", .make = make_fifo};

FlowAccount& Fifo::account_of(const IoRequest& request) {
  const auto index = std::to_underlying(request.app);
  VPFS_ASSERT(index < accounts_.size());
  return accounts_[index];
}

Result<void> Fifo::set_share(AppId app, const Share& /*share*/, TimePoint /*now*/) {
  const auto index = std::to_underlying(app);
  if (index >= accounts_.size()) accounts_.resize(std::size_t{index} + 1);
  holds_.grow(accounts_.size());
  return {};
}

void Fifo::enqueue(IoRequest& request, TimePoint now) {
  request.order = arrivals_++;
  queue_.push_back(request);
  if (account_of(request).queued++ == 0) {
    holds_.wait_for_turn(std::to_underlying(request.app), now);
  }
  ++queued_;
}

Policy::Head Fifo::head(TimePoint /*now*/) {
  return {.request = queue_.front()};
}

void Fifo::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  queue_.remove(request);
  holds_.leave(index, now);
  FlowAccount& account = account_of(request);
  account.dispatched();
  if (account.queued > 0) holds_.wait_for_turn(index, now);
  --queued_;
  if (queue_.front() != nullptr) __builtin_prefetch(queue_.front());
}

void Fifo::complete(const IoRequest& request, Cost /*cost*/, TimePoint /*now*/) {
  account_of(request).completed();
  if (queue_.front() != nullptr) holds_.prefetch(std::to_underlying(queue_.front()->app));
}

void Fifo::withdraw(IoRequest& request, TimePoint now) {
  queue_.remove(request);
  if (--account_of(request).queued == 0) holds_.leave(std::to_underlying(request.app), now);
  --queued_;
}

const IoRequest* Fifo::oldest_of(AppId app) const {
  const auto index = std::to_underlying(app);
  if (index >= accounts_.size() || accounts_[index].queued == 0) return nullptr;
  const IoRequest* request = queue_.front();
  for (int looked = 0; looked < kMostLooked; ++looked, request = request->next_queued) {
    if (request == nullptr || request->app == app) return request;
  }
  return nullptr;
}

FlowState Fifo::flow(AppId app) const {
  const auto index = std::to_underlying(app);
  if (index >= accounts_.size()) return {};
  return accounts_[index].state(oldest_of(app));
}

WaitReason Fifo::why_waiting(AppId app, TimePoint /*now*/) const {
  return {.reason =
              oldest_of(app) == queue_.front() ? kIsNext : "requests that came earlier go first"};
}

}  // namespace vpfs
