#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wide.h"

namespace vpfs {

// The order of flows by key: a 4-ary tournament. Every flow has a leaf of its own, and each inner
// node holds the least of its four children. So a flow's key can change in O(log n), the nodes that
// it changes are known from the flow alone, and the loads of all levels do not wait for each other.
// Flows are small dense integers; allocates in grow() only.
class FlowTournament {
 public:
  struct Key {
    std::uint64_t tag = 0;
    // Breaks ties: a number that grows from one request to the next, over all flows. Entries that
    // are more than 2^31 behind the newest may count as equally old.
    std::uint64_t order = 0;
  };

  // Makes place for the flows 0 ... flows - 1. Adding flows one by one is linear.
  void grow(std::size_t flows);

  [[nodiscard]] bool empty() const { return first_.is_nobody(); }
  // The flow with the smallest key, and its tag. REQUIRES (both): not empty.
  [[nodiscard]] std::uint32_t top() const { return first_.flow(); }
  [[nodiscard]] std::uint64_t top_tag() const { return first_.tag; }
  // Whether there are so many flows that a cache does not keep what all of them need.
  [[nodiscard]] bool has_many() const { return flows_ >= kManyFlows; }
  // A flow that comes soon, now that `flow` is no longer the first: the first one among those below
  // the same node of the third level under the root. Others most often go before it, so there is
  // time to fetch what it needs into the cache. REQUIRES: has_many(), has_place_for(flow), not
  // empty.
  [[nodiscard]] std::uint32_t coming_after(std::uint32_t flow) const {
    std::size_t place = first_leaf_ + flow;
    while (place >= kEndOfThirdLevel) place = parent_of(place);
    return at(place).is_nobody() ? top() : at(place).flow();
  }
  // Whether grow() was called for the flow.
  [[nodiscard]] bool has_place_for(std::uint32_t flow) const { return flow < flows_; }
  [[nodiscard]] bool contains(std::uint32_t flow) const {
    return has_place_for(flow) && !at(first_leaf_ + flow).is_nobody();
  }

  // Puts a flow in, or changes its key. REQUIRES: grow() was called for it.
  void put(std::uint32_t flow, Key key) { set(flow, make_entry(flow, key)); }
  // Takes a flow out. REQUIRES: contains(flow).
  void take_out(std::uint32_t flow) { set(flow, {}); }
  // Takes a flow out, if it is in.
  void erase(std::uint32_t flow) {
    if (contains(flow)) take_out(flow);
  }
  // Takes `amount` off every tag. REQUIRES: no tag is smaller.
  void subtract(std::uint64_t amount);
  // Fetches into the cache what a change of the flow's key will touch and is seldom there.
  // REQUIRES: has_place_for(flow).
  void prefetch(std::uint32_t flow) const {
    __builtin_prefetch(&blocks_[(first_leaf_ + flow) / kChildren]);
  }

 private:
  // Compared as one number of 128 bits, which needs no branch. The default comes after all flows.
  struct Entry {
    std::uint64_t tag = ~std::uint64_t{0};
    std::uint64_t order_and_flow = ~std::uint64_t{0};  // 32 bits each

    [[nodiscard]] bool is_nobody() const { return order_and_flow == ~std::uint64_t{0}; }
    [[nodiscard]] std::uint32_t flow() const { return static_cast<std::uint32_t>(order_and_flow); }
    [[nodiscard]] Wide whole() const { return Wide{tag} << 64 | order_and_flow; }
    [[nodiscard]] bool before(const Entry& other) const { return whole() < other.whole(); }
  };
  static constexpr std::uint64_t kOrders = std::uint64_t{1} << 32;
  static constexpr std::size_t kChildren = 4;
  // A cache line that holds the children of one node. The first one holds just the root, in its
  // last place, so that the node at place p has its children from 4 (p - 2) on.
  struct alignas(64) Block {
    Entry entries[kChildren];
  };
  static constexpr std::size_t kRoot = kChildren - 1;
  static constexpr std::size_t kEndOfThirdLevel =
      kRoot + 1 + kChildren + kChildren * kChildren + kChildren * kChildren * kChildren;
  static constexpr std::size_t kManyFlows = 4096;

  static constexpr std::size_t parent_of(std::size_t place) { return place / kChildren + 2; }

  // The entries of all blocks are contiguous.
  [[nodiscard]] Entry& at(std::size_t place) { return *(blocks_.data()->entries + place); }
  [[nodiscard]] const Entry& at(std::size_t place) const {
    return *(blocks_.data()->entries + place);
  }
  [[nodiscard]] static Entry least(Entry one, Entry other);
  [[nodiscard]] static const Entry& sibling(const Entry& entry, std::uintptr_t bits);
  [[nodiscard]] Entry make_entry(std::uint32_t flow, Key key) {
    if (key.order >= order_base_ + kOrders) [[unlikely]]
      forget_orders(key.order);
    const std::uint64_t order = key.order - std::min(key.order, order_base_);
    return {.tag = key.tag, .order_and_flow = order * kOrders + flow};
  }
  // Makes old entries count as equally old, so that newer ones fit.
  void forget_orders(std::uint64_t newest);
  void set(std::uint32_t flow, Entry entry);
  void play_all();

  Entry first_;  // a copy of the root
  std::vector<Block> blocks_ = {Block{}};
  std::size_t flows_ = 0;  // that have a leaf
  std::size_t first_leaf_ = kRoot;
  std::uint64_t order_base_ = 0;  // entries store their order less this
};

}  // namespace vpfs
