#include "sim/cluster/placement/profile.h"

#include <numeric>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {

std::vector<Step> draw_steps(const Profile& profile, Random& random) {
  VPFS_ASSERT(profile.compute + profile.read + profile.write <= 1000);
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < profile.steps; ++i) {
    const std::uint64_t draw = random.below(1000);
    if (draw < profile.compute) {
      steps.push_back(Step::compute);
    } else if (draw < profile.compute + profile.read) {
      steps.push_back(Step::read);
    } else if (draw < profile.compute + profile.read + profile.write) {
      steps.push_back(Step::write);
    } else {
      steps.push_back(Step::communicate);
    }
  }
  return steps;
}

std::vector<std::uint32_t> draw_permutation(std::uint32_t count, Random& random) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  for (std::uint32_t left = count; left > 1; --left) {
    std::swap(numbers[left - 1], numbers[random.below(left)]);
  }
  return numbers;
}

}  // namespace vpfs::sim
