#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "schedulers/flow_tournament.h"
#include "schedulers/start_tag.h"

namespace vpfs {

// The order of start-time fair queueing alone [SFQ]: the flows whose heads may be served, by (S,
// arrival order), and the virtual time v (docs/schedulers.md, "SFQ(D)").
//
//   S(r) = max(v, F(previous request of the flow)),  F(r) = S(r) + cost(r) / weight
//   send the smallest S, and set v := that S
//   when nothing is queued and nothing outstanding, v := the largest F of what was sent
//
// S and F are in the flows' StartTag: S of the head, or F of what was sent last.
class SfqOrder {
 public:
  using Tag = StartTag::Tag;

  void grow(std::size_t flows) { ready_.grow(flows); }

  [[nodiscard]] bool empty() const { return ready_.empty(); }
  // The flow that goes first, and its S. REQUIRES (both): not empty.
  [[nodiscard]] std::uint32_t top() const { return ready_.top(); }
  [[nodiscard]] Tag top_tag() const { return ready_.top_tag(); }
  [[nodiscard]] bool contains(std::uint32_t flow) const { return ready_.contains(flow); }
  [[nodiscard]] const FlowTournament& ready() const { return ready_; }
  // Puts a flow in, or changes its place. `order` is that of its head.
  void put(std::uint32_t flow, Tag start, std::uint64_t order) {
    ready_.put(flow, {.tag = start, .order = order});
  }
  void erase(std::uint32_t flow) { ready_.erase(flow); }
  void prefetch(std::uint32_t flow) const { ready_.prefetch(flow); }

  [[nodiscard]] Tag virtual_time() const { return virtual_time_; }
  // v when a flow of this weight has got this much more.
  [[nodiscard]] Tag ahead(const StartTag& flow, Cost cost) const {
    return virtual_time_ + flow.amount_of(cost);
  }
  // How far a flow is behind v; zero: it is not.
  [[nodiscard]] Tag behind(const StartTag& flow) const {
    return StartTag::subtract_to_zero(virtual_time_, flow.tag);
  }
  // S of a request that finds nothing of its flow queued. The flow may be `most_behind` behind v,
  // but claims nothing from before the last idle moment.
  [[nodiscard]] Tag start_of_first(const StartTag& flow, Tag most_behind) const {
    if (most_behind == 0) return std::max(flow.tag, virtual_time_);
    const Tag least = StartTag::subtract_to_zero(virtual_time_, most_behind);
    return std::max({flow.tag, least, idle_time_});
  }

  // A request with this S was sent. A flow with a claim may be behind v.
  void sent(Tag start) { virtual_time_ = std::max(virtual_time_, start); }
  // Its F.
  void finishes(Tag finish) { largest_finish_ = std::max(largest_finish_, finish); }
  // v passes over service up to this S that no flow got, so no flow has a claim on it.
  void pass_over(Tag start) { idle_time_ = start; }
  void end_busy_period() {
    virtual_time_ = std::max(virtual_time_, largest_finish_);
    idle_time_ = virtual_time_;
  }

  [[nodiscard]] bool needs_rebase() const { return virtual_time_ > StartTag::kRebaseAt; }
  // Takes v off all tags. Flows with claims may be behind v; then only what all are beyond is taken
  // off.
  template <typename Flows>
  void rebase(Flows& flows) {
    const Tag base = empty() ? virtual_time_ : std::min(virtual_time_, top_tag());
    for (StartTag& flow : flows) flow.rebase(base);
    ready_.subtract(base);
    largest_finish_ = StartTag::subtract_to_zero(largest_finish_, base);
    idle_time_ = StartTag::subtract_to_zero(idle_time_, base);
    virtual_time_ -= base;
  }

  // Without the flows.
  template <typename Archive>
  void archive(Archive& fields) {
    fields("virtual_time", virtual_time_);
    fields("idle_time", idle_time_);
    fields("largest_finish", largest_finish_);
    if constexpr (Archive::kReads) virtual_time_ = std::min(virtual_time_, StartTag::kRebaseAt);
  }

 private:
  FlowTournament ready_;
  Tag virtual_time_ = 0;
  Tag idle_time_ = 0;  // v when nothing was queued or outstanding last
  Tag largest_finish_ = 0;
};

}  // namespace vpfs
