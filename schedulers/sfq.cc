#include "schedulers/sfq.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs {
namespace {

__extension__ using Wide = unsigned __int128;

// Of a queued request, as the heap wants it.
FlowHeap::Key key_of(std::uint64_t tag, const IoRequest& request) {
  return {.tag = tag, .order = static_cast<std::uint32_t>(request.order)};
}

constexpr std::uint64_t subtract_to_zero(std::uint64_t from, std::uint64_t amount) {
  return from - std::min(from, amount);
}

}  // namespace

Sfq::Flow& Sfq::flow_of(const IoRequest& request) {
  const auto index = std::to_underlying(request.app);
  VPFS_ASSERT(index < flows_.size());
  return flows_[index];
}

void Sfq::Flow::set_weight(std::uint32_t value) {
  weight = value;
  remainder = 0;
  inverse = value == 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>((Wide{1} << 64) / value);
}

// scaled / weight without a division: inverse is less than one below 2^64 / weight and scaled is
// below 2^64, so the product is the quotient or one less.
Sfq::Tag Sfq::Flow::tags_of(Cost cost) {
  const std::uint64_t scaled = (cost << kFractionBits) + remainder;
  Tag quotient = static_cast<Tag>(Wide{scaled} * inverse >> 64);
  std::uint64_t rest = scaled - quotient * weight;
  if (rest >= weight) {
    ++quotient;
    rest -= weight;
  }
  remainder = static_cast<std::uint32_t>(rest);
  return quotient;
}

void Sfq::set_share(AppId app, Share share) {
  VPFS_ASSERT(share.weight >= 1 && share.weight <= Share::kMaxWeight);
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) {
    flows_.resize(std::size_t{index} + 1);
    heap_.grow(flows_.size());
  }
  flows_[index].set_weight(share.weight);
}

void Sfq::enqueue(IoRequest& request, TimePoint /*now*/) {
  VPFS_ASSERT(request.cost >= 1 && request.cost <= kMaxCost);
  Flow& flow = flow_of(request);
  request.tag = flow.tags_of(request.cost);
  request.order = arrivals_++;
  if (flow.queue.empty()) {
    flow.tag = std::max(virtual_time_, flow.tag);
    heap_.push(std::to_underlying(request.app), key_of(flow.tag, request));
  }
  flow.queue.push_back(request);
  flow.account.enqueued(request.cost);
  ++queued_;
}

Scheduler::Decision Sfq::next(TimePoint /*now*/) {
  if (heap_.empty()) return {};
  const std::uint32_t index = heap_.top();
  Flow& flow = flows_[index];
  IoRequest& request = *flow.queue.front();
  if (!gate_.admits(request.cost)) return {};

  flow.queue.remove(request);
  flow.account.dispatched(request.cost);
  gate_.start(request.cost);
  --queued_;
  virtual_time_ = flow.tag;
  flow.tag += request.tag;
  largest_finish_ = std::max(largest_finish_, flow.tag);
  if (flow.queue.empty()) {
    flow.tag = subtract_to_zero(flow.tag, std::exchange(flow.credit, 0));
    heap_.erase(index);
  } else {
    const Tag used = std::min(flow.credit, request.tag);
    flow.credit -= used;
    flow.tag -= used;
    heap_.update(index, key_of(flow.tag, *flow.queue.front()));
  }
  if (virtual_time_ > kRebaseAt) rebase();
  return {.request = &request};
}

void Sfq::complete(const IoRequest& request, Cost cost, TimePoint /*now*/) {
  Flow& flow = flow_of(request);
  flow.account.completed(request.cost);
  gate_.finish(request.cost);
  if (cost < request.cost) {
    const Cost not_done = request.cost - cost;
    give_back(flow, std::to_underlying(request.app),
              static_cast<Tag>(Wide{request.tag} * not_done / request.cost));
  }
  end_busy_period_if_idle();
}

void Sfq::give_back(Flow& flow, std::uint32_t index, Tag amount) {
  if (flow.queue.empty()) {
    flow.tag = subtract_to_zero(flow.tag, amount);
    return;
  }
  const Tag used = std::min(amount, flow.tag - virtual_time_);
  flow.tag -= used;
  // Saturates where more than 16 of the largest requests at weight 1 come back at once.
  if (__builtin_add_overflow(flow.credit, amount - used, &flow.credit)) flow.credit = ~Tag{0};
  heap_.update(index, key_of(flow.tag, *flow.queue.front()));
}

void Sfq::withdraw(IoRequest& request, TimePoint /*now*/) {
  Flow& flow = flow_of(request);
  const bool was_head = flow.queue.front() == &request;
  flow.queue.remove(request);
  flow.account.withdrawn(request.cost);
  --queued_;
  const auto index = std::to_underlying(request.app);
  if (flow.queue.empty()) {
    flow.tag = subtract_to_zero(flow.tag, std::exchange(flow.credit, 0));
    heap_.erase(index);
  } else if (was_head) {
    heap_.update(index, key_of(flow.tag, *flow.queue.front()));
  }
  end_busy_period_if_idle();
}

void Sfq::end_busy_period_if_idle() {
  if (queued_ != 0 || gate_.requests() != 0) return;
  virtual_time_ = std::max(virtual_time_, largest_finish_);
  if (virtual_time_ > kRebaseAt) rebase();
}

void Sfq::rebase() {
  for (Flow& flow : flows_) flow.tag = subtract_to_zero(flow.tag, virtual_time_);
  heap_.subtract(virtual_time_);
  largest_finish_ = subtract_to_zero(largest_finish_, virtual_time_);
  virtual_time_ = 0;
}

Scheduler::FlowState Sfq::flow(AppId app) const {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return {};
  return flows_[index].account.state(flows_[index].queue.front());
}

Scheduler::WaitReason Sfq::why_waiting(AppId app, TimePoint /*now*/) const {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size() || flows_[index].queue.empty()) return {};
  const std::string_view full = gate_.reason(flows_[heap_.top()].queue.front()->cost);
  if (!full.empty()) return {.reason = full};
  return {.reason =
              heap_.top() == index ? kIsNext : "flows that had less for their weight go first"};
}

}  // namespace vpfs
