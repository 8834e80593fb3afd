#include "schedulers/flow_heap.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

// Every operation against an ordinary map, from random states. If tags are equal, the smaller flow
// is first, as in the map.
TEST(FlowHeap, TopIsAlwaysTheSmallestTag) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint32_t kFlows = 60;
    FlowHeap heap;
    heap.grow(kFlows);
    std::map<std::uint32_t, std::uint64_t> model;
    const auto least = [&] {
      return std::ranges::min_element(
          model, [](const auto& a, const auto& b) { return a.second < b.second; });
    };
    for (int step = 0; step < 600; ++step) {
      const auto flow = static_cast<std::uint32_t>(random() % kFlows);
      if (random() % 3 != 0) {
        const std::uint64_t tag = random() % 40;
        heap.put(flow, tag);
        model[flow] = tag;
      } else {
        heap.erase(flow);
        model.erase(flow);
      }
      ASSERT_EQ(heap.size(), model.size());
      ASSERT_EQ(heap.empty(), model.empty());
      ASSERT_EQ(heap.contains(flow), model.contains(flow));
      if (model.empty()) continue;
      ASSERT_EQ(heap.top(), least()->first) << "seed " << seed << " step " << step;
      ASSERT_EQ(heap.top_tag(), least()->second);
    }
    for (; !model.empty(); model.erase(heap.top()), heap.erase(heap.top())) {
      ASSERT_EQ(heap.top(), least()->first) << "seed " << seed << " draining";
    }
    EXPECT_TRUE(heap.empty());
  }
}

}  // namespace
}  // namespace vpfs
