#include "sim/cluster/placement/exchange.h"

namespace vpfs::sim {
namespace {

constexpr std::uint64_t kSmall = 100;  // bytes

}  // namespace

Exchange::Exchange(const Profile& profile, std::uint32_t tasks, Random& random)
    : profile_(profile), tasks_(tasks) {
  if (tasks < 2) return;
  switch (profile.pattern) {
    case Pattern::permutation:
      partners_ = draw_permutation(tasks, random);
      phases_ = profile.messages;
      break;
    case Pattern::neighbours:
      phases_ = profile.messages;
      break;
    case Pattern::all_to_all:
    case Pattern::ring:
      phases_ = (tasks - 1) * profile.messages;
      break;
  }
}

std::uint32_t Exchange::fan_out() const {
  return profile_.pattern == Pattern::neighbours ? 2 : 1;
}

std::uint32_t Exchange::heard_by(std::uint32_t task) const {
  return !partners_.empty() && partners_[task] == task ? 0 : fan_out();
}

std::vector<Exchange::Message> Exchange::sent_by(std::uint32_t task, std::uint32_t phase,
                                                 Random& random) const {
  const auto next = [&](std::uint32_t distance) { return (task + distance) % tasks_; };
  switch (profile_.pattern) {
    case Pattern::permutation:
      if (partners_[task] == task) return {};
      return {{.to = partners_[task], .size = draw_size(phase, random)}};
    case Pattern::neighbours: {
      const Bytes size = draw_size(2 * phase, random);
      return {{.to = next(1), .size = size},
              {.to = next(tasks_ - 1), .size = draw_size(2 * phase + 1, random)}};
    }
    case Pattern::all_to_all:
      return {{.to = next(1 + phase % (tasks_ - 1)), .size = draw_size(phase, random)}};
    case Pattern::ring:
      return {{.to = next(1), .size = draw_size(phase, random)}};
  }
  return {};
}

// The size of the message of that number of a task.
Bytes Exchange::draw_size(std::uint32_t number, Random& random) const {
  const std::uint64_t bytes = profile_.message_bytes.count;
  if (profile_.sizes == MessageSizes::mixed) {
    const bool is_small = random.chance(90);
    const std::uint64_t most = is_small && bytes > kSmall ? kSmall : bytes;
    return {most == 0 ? 0 : 1 + random.below(most)};
  }
  const std::uint64_t messages = std::uint64_t{phases_} * fan_out();
  return {bytes / messages + (number < bytes % messages ? 1 : 0)};
}

}  // namespace vpfs::sim
