#include "sim/cluster/placement/blocks.h"

#include <numeric>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {
namespace {

constexpr std::size_t kEnd = 4;

std::size_t draw_next(const BlockWeights& weights, Random& random) {
  const std::uint64_t all = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  VPFS_ASSERT(all > 0);
  std::uint64_t draw = random.below(all);
  std::size_t kind = 0;
  while (draw >= weights[kind]) draw -= weights[kind++];
  return kind;
}

}  // namespace

std::vector<Block> draw_blocks(const BlockProfile& profile, Random& random) {
  VPFS_ASSERT(profile.least_percent >= 1 && profile.least_percent <= 100);
  std::vector<Block> blocks = {{.step = Step::read, .is_staging = true}};
  while (blocks.size() <= profile.most_blocks) {
    const std::size_t row = static_cast<std::size_t>(std::to_underlying(blocks.back().step));
    const std::size_t kind = draw_next(profile.next[row], random);
    if (kind == kEnd) break;
    const auto percent = static_cast<std::uint32_t>(profile.least_percent +
                                                    random.below(101 - profile.least_percent));
    blocks.push_back({.step = static_cast<Step>(kind), .percent = percent});
  }
  blocks.push_back({.step = Step::write, .is_staging = true});
  return blocks;
}

}  // namespace vpfs::sim
