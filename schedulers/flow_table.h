#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "schedulers/flow_tournament.h"
#include "schedulers/hold_times.h"
#include "schedulers/policy.h"
#include "schedulers/request_list.h"

namespace vpfs {

// The part of a flow that every policy with an order among flows has: its requests, first come
// first served.
struct FlowQueue {
  RequestList queue;
  FlowAccount account;
};

// Where a request joined its flow's queue.
enum class Joined : std::uint8_t {
  as_head,
  behind,
  late,  // behind requests that arrived after it: it was in no queue for a while
};

// The flows of a policy, by AppId. Allocates in grow() only. kFindsLate: push_back() finds late
// requests, for oldest_arrival().
template <std::derived_from<FlowQueue> Flow, bool kFindsLate = false>
class FlowTable {
 public:
  FlowTable() = default;
  // False: the policy needs to find none here, which saves memory for each flow.
  explicit FlowTable(bool finds_late) requires kFindsLate : finds_late_(finds_late) {}

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  // Makes room for a flow. False: there was room.
  bool grow(AppId app) {
    const std::size_t needed = std::size_t{std::to_underlying(app)} + 1;
    if (needed <= flows_.size()) return false;
    flows_.resize(needed);
    if (finds_late_) late_.resize(needed);
    holds_.grow(needed);
    return true;
  }

  // REQUIRES (all): grow() was called for it.
  [[nodiscard]] Flow& operator[](std::uint32_t index) { return flows_[index]; }
  [[nodiscard]] const Flow& operator[](std::uint32_t index) const { return flows_[index]; }
  [[nodiscard]] Flow& of(const IoRequest& request) {
    const auto index = std::to_underlying(request.app);
    VPFS_ASSERT(index < flows_.size());
    return flows_[index];
  }
  [[nodiscard]] auto begin() { return flows_.begin(); }
  [[nodiscard]] auto end() { return flows_.end(); }

  // Puts the request last in its flow and gives it its arrival order.
  Joined push_back(Flow& flow, IoRequest& request) {
    request.order = arrivals_++;
    const IoRequest* const before = flow.queue.back();
    flow.queue.push_back(request);
    ++flow.account.queued;
    ++queued_;
    if (before == nullptr) return Joined::as_head;
    if (!kFindsLate || request.arrival >= before->arrival || !finds_late_) return Joined::behind;
    note_late(*flow.queue.front(), request);
    return Joined::late;
  }
  // No request in the flow's queue arrived earlier. Late ones that have left count while others are
  // there that joined while they were. REQUIRES: it has a head.
  [[nodiscard]] TimePoint oldest_arrival(std::uint32_t index) const requires kFindsLate {
    const IoRequest& head = *flows_[index].queue.front();
    TimePoint oldest = head.arrival;
    if (!finds_late_) return oldest;
    for (const LateGroup& each : late_[index].groups) {
      if (head.order <= each.last) oldest = std::min(oldest, each.arrival);
    }
    return oldest;
  }
  void dispatch(Flow& flow, IoRequest& request, TimePoint now) {
    holds_.leave(std::to_underlying(request.app), now);
    flow.queue.remove(request);
    flow.account.dispatched();
    --queued_;
  }
  // True: it was the head.
  bool withdraw(Flow& flow, IoRequest& request, TimePoint now) {
    const bool was_head = flow.queue.front() == &request;
    if (was_head) holds_.leave(std::to_underlying(request.app), now);
    flow.queue.remove(request);
    --flow.account.queued;
    --queued_;
    return was_head;
  }

  // Whoever places a head reports here what the head waits for.
  [[nodiscard]] HoldClock& holds() { return holds_; }
  void prefetch(std::uint32_t index) const {
    __builtin_prefetch(&flows_[index]);
    holds_.prefetch(index);
  }
  void prefetch_head(std::uint32_t index) const { __builtin_prefetch(flows_[index].queue.front()); }
  // Fetches the request behind the head, which is in the cache. False: there is none.
  bool prefetch_behind_head(std::uint32_t index) const {
    const IoRequest* const head = flows_[index].queue.front();
    if (head == nullptr || head->next_queued == nullptr) return false;
    __builtin_prefetch(head->next_queued);
    return true;
  }

  [[nodiscard]] std::size_t queued() const { return queued_; }
  [[nodiscard]] FlowState state(AppId app) const {
    const auto index = std::to_underlying(app);
    if (index >= flows_.size()) return {};
    return flows_[index].account.state(flows_[index].queue.front());
  }
  // The head of some flow in one of the heaps; nullptr: they are all empty.
  [[nodiscard]] IoRequest* some_head(std::initializer_list<const FlowTournament*> heaps) const {
    for (const FlowTournament* heap : heaps) {
      if (!heap->empty()) return flows_[heap->top()].queue.front();
    }
    return nullptr;
  }

 private:
  // Late requests that joined a flow's queue one after the other: the earliest arrival of all, and
  // the order of the last.
  struct LateGroup {
    TimePoint arrival = kNever;
    std::uint64_t last = 0;
  };
  // The second group is of those that joined while some of the first were queued, which none joins
  // any more. So an arrival does not stay with ever new late requests after its own has left.
  struct Late {
    std::array<LateGroup, 2> groups;
  };

  void note_late(const IoRequest& head, const IoRequest& request) {
    auto& [first, second] = late_[std::to_underlying(request.app)].groups;
    if (head.order > first.last) {
      first = second;
      second = {};
    }
    LateGroup& joined = head.order > first.last || first.arrival == kNever ? first : second;
    if (&joined == &first) first = {};
    joined.arrival = std::min(joined.arrival, request.arrival);
    joined.last = request.order;
  }

  std::vector<Flow> flows_;
  std::vector<Late> late_;  // by flow; empty unless late ones are found
  HoldClock holds_;
  std::size_t queued_ = 0;
  std::uint64_t arrivals_ = 0;
  bool finds_late_ = kFindsLate;
};

}  // namespace vpfs
