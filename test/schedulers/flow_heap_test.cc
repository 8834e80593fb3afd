#include "schedulers/flow_heap.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

bool before(const FlowHeap::Key& a, const FlowHeap::Key& b) {
  return a.tag != b.tag ? a.tag < b.tag : a.order < b.order;
}

// Every operation against an ordinary map, from random states.
TEST(FlowHeap, TopIsAlwaysTheSmallestKey) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint32_t kFlows = 60;
    FlowHeap heap;
    heap.grow(kFlows);
    std::map<std::uint32_t, FlowHeap::Key> model;
    std::uint64_t order = UINT32_MAX - 300;  // leaves 32 bits on the way
    for (int step = 0; step < 600; ++step) {
      const auto flow = static_cast<std::uint32_t>(random() % kFlows);
      const FlowHeap::Key key = {.tag = 1000 + random() % 40, .order = order++};
      const bool present = model.contains(flow);
      if (!present) {
        heap.push(flow, key);
        model[flow] = key;
      } else if (random() % 2 == 0) {
        heap.update(flow, key);
        model[flow] = key;
      } else {
        heap.erase(flow);
        model.erase(flow);
      }
      ASSERT_EQ(heap.empty(), model.empty());
      if (model.empty()) continue;
      const auto least = std::ranges::min_element(
          model, [](const auto& a, const auto& b) { return before(a.second, b.second); });
      ASSERT_EQ(heap.top(), least->first) << "seed " << seed << " step " << step;
      ASSERT_EQ(heap.top_tag(), least->second.tag);
      ASSERT_EQ(heap.contains(flow), model.contains(flow));
    }
    heap.subtract(1000);
    for (; !model.empty(); model.erase(heap.top()), heap.erase(heap.top())) {
      const auto least = std::ranges::min_element(
          model, [](const auto& a, const auto& b) { return before(a.second, b.second); });
      ASSERT_EQ(heap.top(), least->first) << "seed " << seed << " draining";
    }
    EXPECT_TRUE(heap.empty());
  }
}

}  // namespace
}  // namespace vpfs
