#include "sim/placement/profile.h"

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

std::vector<Message> draw_messages(const Profile& profile, Random& random) {
  std::vector<Message> messages;
  if (profile.pattern == Pattern::permutation) {
    const std::vector<std::uint32_t> to = draw_permutation(profile.tasks, random);
    for (std::uint32_t task = 0; task < profile.tasks; ++task) {
      if (to[task] != task) messages.push_back({task, to[task], profile.message_bytes});
    }
    return messages;
  }
  for (std::uint32_t task = 0; task < profile.tasks; ++task) {
    for (const Message& each : draw_messages_of(task, profile, random)) messages.push_back(each);
  }
  return messages;
}

std::vector<Message> draw_messages_of(std::uint32_t task, const Profile& profile, Random& random) {
  const std::uint32_t tasks = profile.tasks;
  const std::uint64_t bytes = profile.message_bytes.count;
  std::vector<Message> messages;
  const auto add = [&](std::uint32_t to, std::uint64_t size) {
    if (to != task && size > 0) messages.push_back({.from = task, .to = to, .size = {size}});
  };
  switch (profile.pattern) {
    case Pattern::permutation:
      add(static_cast<std::uint32_t>(random.below(tasks)), bytes);
      break;
    case Pattern::neighbours:
      add((task + 1) % tasks, bytes / 2);
      add((task + tasks - 1) % tasks, bytes - bytes / 2);
      break;
    case Pattern::all_to_all:
      for (std::uint32_t i = 1; i < tasks; ++i) {
        add((task + i) % tasks, bytes / (tasks - 1) + (i <= bytes % (tasks - 1) ? 1 : 0));
      }
      break;
    case Pattern::ring:
      add((task + 1) % tasks, bytes);
      break;
  }
  return messages;
}

}  // namespace vpfs::sim
