#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpfs {

// A 4-ary min-heap of flows that knows where each flow stands, so that any flow's key can change in
// O(log n). Flows are small dense integers; allocates in grow() only.
class FlowHeap {
 public:
  struct Key {
    std::uint64_t tag = 0;
    // Breaks ties. A serial number that may wrap around: of two tied keys, the one that comes first
    // is right while they are less than 2^31 apart.
    std::uint32_t order = 0;

    [[nodiscard]] bool before(const Key& other) const {
      if (tag != other.tag) return tag < other.tag;
      return static_cast<std::int32_t>(order - other.order) < 0;
    }
  };

  // Makes place for the flows 0 ... flows - 1.
  void grow(std::size_t flows);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  // The flow with the smallest key. REQUIRES: not empty.
  [[nodiscard]] std::uint32_t top() const { return entries_.front().flow; }

  // REQUIRES: the flow is not in the heap.
  void push(std::uint32_t flow, Key key);
  // REQUIRES (both): the flow is in the heap.
  void update(std::uint32_t flow, Key key);
  void erase(std::uint32_t flow);
  // Takes `amount` off every tag. REQUIRES: no tag is smaller.
  void subtract(std::uint64_t amount);

 private:
  // 16 bytes, so that the four children of an entry are as many as a cache line holds.
  struct Entry {
    std::uint64_t tag = 0;
    std::uint32_t order = 0;
    std::uint32_t flow = 0;

    [[nodiscard]] bool before(const Entry& other) const {
      return Key{tag, order}.before(Key{other.tag, other.order});
    }
  };
  static constexpr std::size_t kChildren = 4;
  static constexpr std::size_t parent_of(std::size_t place) { return (place - 1) / kChildren; }

  void put(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.flow] = static_cast<std::uint32_t>(place);
  }
  void sift_up(std::size_t place, const Entry& entry);
  void sift_down(std::size_t place, const Entry& entry);
  // Puts `entry` into the hole at `place`, or where the order wants it from there.
  void settle(std::size_t place, const Entry& entry);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> places_;  // of a flow in entries_; meaningless while it is not there
};

}  // namespace vpfs
