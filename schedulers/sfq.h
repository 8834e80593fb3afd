#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/depth_gate.h"
#include "schedulers/flow_heap.h"
#include "schedulers/request_list.h"
#include "schedulers/scheduler.h"

namespace vpfs {

// SFQ(D), start-time fair queueing with depth D [SFQD]: backlogged flows get service in proportion
// to their weights, and idle ones leave theirs to the others and keep no claim.
//
//   S(r) = max(v, F(previous request of the flow)),  F(r) = S(r) + cost(r) / weight
//   send the smallest S (ties: arrival order) while the depth allows, and set v := that S;
//   when nothing is queued and nothing outstanding, v := the largest F of what was sent.
//
// Only the head of a flow has a start tag here. While a flow is backlogged v never passes its
// head's tag, so the max() above decides only for a request that finds its flow's queue empty; for
// every later one S is the F before it, which is known when that one leaves. A request carries just
// cost / weight, taken at its arrival. So withdrawing any request leaves the others with exactly
// the tags that they would have if it had never come.
//
// A request that did less than it was charged gives the rest back: the flow's tag moves earlier by
// it, but not below v. What would go below v stays as `credit` and moves the tags of the flow's
// next requests instead, each no further than to v; it ends with the backlog. docs/schedulers.md
// says why this stays fair.
//
// Arithmetic. Tags are fixed point with kFractionBits, remainders of the division are carried to
// the flow's next request. No tag is ever more than one request above v, at most kMaxCost x 2^20 =
// 2^60; v is kept below 2^62 by taking it off all tags when it passes that (O(flows); at 10 GB/s
// and one flow of weight 1 every seven minutes, and rarer with more weight). So no tag reaches
// 2^63.
class Sfq final : public Scheduler {
 public:
  explicit Sfq(Depth depth) : gate_(depth) {}

  void enqueue(IoRequest& request, TimePoint now) override;
  [[nodiscard]] Decision next(TimePoint now) override;
  void complete(const IoRequest& request, Cost cost, TimePoint now) override;
  void withdraw(IoRequest& request, TimePoint now) override;
  void set_share(AppId app, Share share) override;

  [[nodiscard]] FlowState flow(AppId app) const override;
  [[nodiscard]] WaitReason why_waiting(AppId app, TimePoint now) const override;
  [[nodiscard]] std::size_t outstanding() const override { return gate_.requests(); }
  [[nodiscard]] std::size_t queued() const override { return queued_; }

 private:
  using Tag = std::uint64_t;
  static constexpr int kFractionBits = 20;  // so that even one byte at kMaxWeight is not free
  static constexpr Tag kRebaseAt = Tag{1} << 62;
  static_assert(kMaxCost << kFractionBits == Tag{1} << 60);
  static_assert((Tag{1} << kFractionBits) >= Share::kMaxWeight);

  struct Flow {
    RequestList queue;
    FlowAccount account;
    Tag tag = 0;     // S of the head; while the queue is empty, F of what was sent last
    Tag credit = 0;  // zero while the queue is empty
    std::uint64_t inverse = ~std::uint64_t{0};  // of weight, times 2^64
    std::uint32_t weight = 1;
    std::uint32_t remainder = 0;  // of the last division by weight

    void set_weight(std::uint32_t value);
    // What a request of this cost moves the tags by; carries the remainder.
    Tag tags_of(Cost cost);
  };

  Flow& flow_of(const IoRequest& request);
  void give_back(Flow& flow, std::uint32_t index, Tag amount);
  void end_busy_period_if_idle();
  void rebase();

  DepthGate gate_;
  std::vector<Flow> flows_;
  FlowHeap heap_;  // the backlogged flows by their heads' (S, arrival order)
  Tag virtual_time_ = 0;
  Tag largest_finish_ = 0;
  std::size_t queued_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace vpfs
