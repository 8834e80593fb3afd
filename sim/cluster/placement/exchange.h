#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/cluster/placement/profile.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// The senders, receivers and sizes of messages in one communication of an application.
//
// It has phases. A task begins a phase when all that it sent in the last one has arrived, and all
// that others sent it there. So messages depend on each other along the pattern, and a late task
// holds up those that hear from it.
class Exchange {
 public:
  struct Message {
    std::uint32_t to = 0;  // a task
    Bytes size;

    bool operator==(const Message&) const = default;
  };

  // Among tasks 0 ... tasks - 1. The profile outlives it. A permutation is drawn for all phases.
  Exchange(const Profile& profile, std::uint32_t tasks, Random& random);

  [[nodiscard]] std::uint32_t phases() const { return phases_; }
  // What a task sends in a phase; `random` draws the sizes of mixed messages.
  [[nodiscard]] std::vector<Message> sent_by(std::uint32_t task, std::uint32_t phase,
                                             Random& random) const;
  // How many messages a task hears in each phase: as many as it sends.
  [[nodiscard]] std::uint32_t heard_by(std::uint32_t task) const;

 private:
  [[nodiscard]] Bytes draw_size(std::uint32_t number, Random& random) const;
  [[nodiscard]] std::uint32_t fan_out() const;

  const Profile& profile_;
  std::uint32_t tasks_;
  std::uint32_t phases_ = 0;
  std::vector<std::uint32_t> partners_;  // of a permutation
};

}  // namespace vpfs::sim
