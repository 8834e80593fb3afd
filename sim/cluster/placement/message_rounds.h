#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/cluster/placement/blocks.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// What the communications of an application have in common.
struct MessageShape {
  std::uint32_t messages = 0;  // of all tasks, in one communication
  std::uint32_t rounds = 1;
  std::uint32_t bundle = 1;  // messages that are one here
};
[[nodiscard]] MessageShape draw_message_shape(const BlockProfile& profile, Random& random);

// One communication: messages between random tasks, round by round, and which have arrived. A task
// ends a round when all messages of the round to it have arrived.
class MessageRounds {
 public:
  struct Message {
    std::uint32_t round = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Bytes size;
  };

  MessageRounds(const BlockProfile& profile, const MessageShape& shape, Random& random);

  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  [[nodiscard]] std::span<const Message> sent_by(std::uint32_t task, std::uint32_t round) const;
  void arrived(std::uint32_t task, std::uint32_t round) { --awaited_[index(task, round)]; }
  [[nodiscard]] bool has_heard_all(std::uint32_t task, std::uint32_t round) const {
    return awaited_[index(task, round)] == 0;
  }
  // A task has ended it. Returns whether it was the last one.
  [[nodiscard]] bool leave() { return --left_ == 0; }

 private:
  [[nodiscard]] std::size_t index(std::uint32_t task, std::uint32_t round) const {
    return std::size_t{round} * tasks_ + task;
  }

  std::uint32_t tasks_;
  std::uint32_t rounds_;
  std::uint32_t left_;
  std::vector<Message> messages_;       // by round and sender
  std::vector<std::uint32_t> first_;    // of each round and sender
  std::vector<std::uint32_t> awaited_;  // by round and receiver
};

}  // namespace vpfs::sim
