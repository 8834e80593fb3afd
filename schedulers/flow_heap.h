#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wide.h"

namespace vpfs {

// A 4-ary min-heap of flows by tag; of equal tags, the smaller flow comes first. A change costs
// O(log n) in the flows that are in it, so it is for a few flows of many (FlowTournament is for
// most of them). It knows each flow's place, so any flow's tag can change. Flows are small dense
// integers; allocates in grow() only.
class FlowHeap {
 public:
  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // The flow with the smallest tag, and its tag. REQUIRES (both): not empty.
  [[nodiscard]] std::uint32_t top() const { return blocks_.front().entries[kRoot].flow; }
  [[nodiscard]] std::uint64_t top_tag() const { return blocks_.front().entries[kRoot].tag; }
  [[nodiscard]] bool contains(std::uint32_t flow) const {
    return flow < places_.size() && places_[flow] != kNowhere;
  }

  // Puts a flow in, or changes its tag. REQUIRES: grow() was called for it.
  void put(std::uint32_t flow, std::uint64_t tag);
  // Takes a flow out, if it is in.
  void erase(std::uint32_t flow);
  // Fetches what is known of a flow into the cache.
  void prefetch(std::uint32_t flow) const { __builtin_prefetch(&places_[flow]); }

 private:
  // Compared as one number of 128 bits, which needs no branch.
  struct Entry {
    std::uint64_t tag = 0;
    std::uint32_t flow = 0;

    [[nodiscard]] Wide whole() const { return Wide{tag} << 64 | flow; }
    [[nodiscard]] bool before(const Entry& other) const { return whole() < other.whole(); }
  };
  static constexpr std::size_t kChildren = 4;
  // A cache line that holds the children of one entry. The first one holds just the root, in its
  // last place, so that place p has its children from 4 (p - 2) on.
  struct alignas(64) Block {
    Entry entries[kChildren];
  };
  static constexpr std::size_t kRoot = kChildren - 1;
  static constexpr std::uint32_t kNowhere = 0;

  static constexpr std::size_t parent_of(std::size_t place) { return place / kChildren + 2; }
  static constexpr std::size_t first_child_of(std::size_t place) { return kChildren * (place - 2); }

  [[nodiscard]] Entry& at(std::size_t place) {
    return blocks_[place / kChildren].entries[place % kChildren];
  }
  // The place after the last one in use.
  [[nodiscard]] std::size_t end() const { return kRoot + size_; }
  void put_at(std::size_t place, const Entry& entry) {
    at(place) = entry;
    places_[entry.flow] = static_cast<std::uint32_t>(place);
  }
  [[nodiscard]] std::size_t least_of(std::size_t first);
  void sift_up(std::size_t place, const Entry& entry);
  // Puts `entry` into the hole at `place` or, where the order requires it, above or below.
  void settle(std::size_t place, const Entry& entry);

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> places_;  // of each flow
  std::size_t size_ = 0;
};

}  // namespace vpfs
