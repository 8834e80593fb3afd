#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpfs {

// A 4-ary min-heap of flows. It knows each flow's place, so any flow's key can change in O(log n).
// Flows are small dense integers; allocates in grow() only.
class FlowHeap {
 public:
  struct Key {
    std::uint64_t tag = 0;
    // Breaks ties: a number that grows from one request to the next, over all flows. Entries that
    // are more than 2^31 behind the newest may count as equally old.
    std::uint64_t order = 0;
  };

  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  [[nodiscard]] bool empty() const { return size_ == 0; }
  // The flow with the smallest key, and its tag. REQUIRES (both): not empty.
  [[nodiscard]] std::uint32_t top() const { return blocks_.front()[kRoot].flow(); }
  [[nodiscard]] std::uint64_t top_tag() const { return blocks_.front()[kRoot].tag; }
  [[nodiscard]] bool contains(std::uint32_t flow) const {
    return flow < places_.size() && places_[flow] != kNowhere;
  }

  // REQUIRES: the flow is not in the heap.
  void push(std::uint32_t flow, Key key);
  // REQUIRES (both): the flow is in the heap.
  void update(std::uint32_t flow, Key key);
  void erase(std::uint32_t flow);
  // Takes `amount` off every tag. REQUIRES: no tag is smaller.
  void subtract(std::uint64_t amount);

 private:
  __extension__ using Whole = unsigned __int128;

  // Compared as one number of 128 bits, which needs no branch.
  struct Entry {
    std::uint64_t tag = 0;
    std::uint64_t order_and_flow = 0;  // 32 bits each

    [[nodiscard]] std::uint32_t flow() const { return static_cast<std::uint32_t>(order_and_flow); }
    [[nodiscard]] Whole whole() const { return Whole{tag} << 64 | order_and_flow; }
    [[nodiscard]] bool before(const Entry& other) const { return whole() < other.whole(); }
  };
  static constexpr std::size_t kChildren = 4;
  // A cache line that holds the children of one entry. The first one holds just the root, in its
  // last place, so that place p has its children from 4 (p - 2) on.
  struct alignas(64) Block : std::array<Entry, kChildren> {};
  static constexpr std::size_t kRoot = kChildren - 1;
  static constexpr std::uint32_t kNowhere = 0;

  static constexpr std::size_t parent_of(std::size_t place) { return place / kChildren + 2; }
  static constexpr std::size_t first_child_of(std::size_t place) { return kChildren * (place - 2); }

  [[nodiscard]] Entry& at(std::size_t place) {
    return blocks_[place / kChildren][place % kChildren];
  }
  // The place after the last one in use.
  [[nodiscard]] std::size_t end() const { return kRoot + size_; }
  void put(std::size_t place, const Entry& entry) {
    at(place) = entry;
    places_[entry.flow()] = static_cast<std::uint32_t>(place);
  }
  [[nodiscard]] Entry make_entry(std::uint32_t flow, Key key);
  [[nodiscard]] std::size_t least_of(std::size_t first);
  void sift_up(std::size_t place, const Entry& entry);
  // Puts `entry` into the hole at `place` or, where the order requires it, above or below.
  void settle(std::size_t place, const Entry& entry);

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> places_;  // of each flow
  std::size_t size_ = 0;
  std::uint64_t order_base_ = 0;  // entries store their order less this
};

}  // namespace vpfs
