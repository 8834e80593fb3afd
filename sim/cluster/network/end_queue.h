#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "sim/cluster/network/flow_table.h"

namespace vpfs::sim {

// When flows end: the next one first, and of equal ones the one that started first.
class EndQueue {
 public:
  struct End {
    TimePoint time;
    std::uint64_t order = 0;  // of starts
    FlowSlot flow = 0;
  };

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // REQUIRES: !empty().
  [[nodiscard]] const End& next() const { return heap_.front(); }
  // Adds a flow or moves it.
  void set(const End& end);
  // A flow that is not there is none.
  void remove(FlowSlot flow);

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  [[nodiscard]] static bool before(const End& one, const End& other) {
    return one.time != other.time ? one.time < other.time : one.order < other.order;
  }
  void put(std::size_t place, const End& end);
  void sift(std::size_t place, const End& end);

  std::vector<End> heap_;
  std::vector<std::uint32_t> places_;  // of flows in it
};

}  // namespace vpfs::sim
