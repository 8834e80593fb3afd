#include "sim/cluster/placement/message_rounds.h"

#include <algorithm>
#include <tuple>

namespace vpfs::sim {
namespace {

constexpr std::uint64_t kTiny = 100;  // bytes

std::uint64_t draw_message(std::uint64_t largest, Random& random) {
  const std::uint64_t most = random.chance(80) ? std::min(kTiny, largest) : largest;
  return 1 + random.below(most);
}

}  // namespace

MessageShape draw_message_shape(const BlockProfile& profile, Random& random) {
  const auto more = static_cast<std::uint32_t>(random.below(10));
  const auto rounds = static_cast<std::uint32_t>(1 + random.below(10));
  if (profile.tasks < 2 || profile.largest_message.count == 0) return {};
  const std::uint32_t all = profile.tasks + more;
  const std::uint32_t most = std::max(profile.most_messages, 1U);
  const std::uint32_t bundle = (all + most - 1) / most;
  return {.messages = profile.tasks * all / bundle, .rounds = rounds, .bundle = bundle};
}

MessageRounds::MessageRounds(const BlockProfile& profile, const MessageShape& shape, Random& random)
    : tasks_(profile.tasks),
      rounds_(shape.rounds),
      left_(profile.tasks),
      first_(std::size_t{rounds_} * tasks_ + 1),
      awaited_(std::size_t{rounds_} * tasks_) {
  messages_.reserve(shape.messages);
  for (std::uint32_t i = 0; i < shape.messages; ++i) {
    const auto from = static_cast<std::uint32_t>(random.below(tasks_));
    const auto to = static_cast<std::uint32_t>((from + 1 + random.below(tasks_ - 1)) % tasks_);
    Message message = {.round = i % rounds_, .from = from, .to = to, .size = {}};
    for (std::uint32_t part = 0; part < shape.bundle; ++part) {
      message.size.count += draw_message(profile.largest_message.count, random);
    }
    messages_.push_back(message);
    ++awaited_[index(to, message.round)];
    ++first_[index(from, message.round) + 1];
  }
  std::ranges::sort(messages_, {}, [this](const Message& each) {
    return std::tuple(index(each.from, each.round), each.to, each.size.count);
  });
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

std::span<const MessageRounds::Message> MessageRounds::sent_by(std::uint32_t task,
                                                               std::uint32_t round) const {
  const std::size_t at = index(task, round);
  return std::span(messages_).subspan(first_[at], first_[at + 1] - first_[at]);
}

}  // namespace vpfs::sim
