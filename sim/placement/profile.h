#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// What tasks do, one step after the other.
enum class Step : std::uint8_t { compute, communicate, read, write };

// To whom a task sends in a step.
enum class Pattern : std::uint8_t {
  permutation,  // each to one, and each hears from one, at random in each step
  neighbours,   // to the two beside it, in a ring of all tasks
  all_to_all,   // to each other task, in equal parts
  ring,         // n-body: to the next in a ring of all tasks; a step is one round of it
};

// A Markov application: init, then steps that are drawn one by one, then the end. In lockstep all
// tasks have the same sequence. Otherwise each has its own, so that some communicate while others
// read or write.
struct Profile {
  bool lockstep = false;
  std::uint32_t tasks = 64;
  std::uint32_t io_tasks = 64;  // the first ones; the others pass over reads and writes
  std::uint32_t steps = 40;
  // In a thousand steps; the rest communicates.
  std::uint32_t compute = 125;
  std::uint32_t read = 375;
  std::uint32_t write = 375;
  Duration compute_time = std::chrono::milliseconds(50);
  Bytes io_bytes = {64 * kMiB};       // of a task in a step
  Bytes data_bytes = {256 * kMiB};    // of a task: staged in before its first step, and out at last
  Bytes message_bytes = {16 * kMiB};  // that a task sends in a step
  Pattern pattern = Pattern::permutation;
  std::uint32_t memory_percent = 0;  // of accesses that the memory of the device's node answers
  std::uint32_t remote_percent = 0;  // of accesses that go elsewhere than to the task's own device
};

// REQUIRES: compute + read + write <= 1000.
[[nodiscard]] std::vector<Step> draw_steps(const Profile& profile, Random& random);

// Each number below `count` once, in random order.
[[nodiscard]] std::vector<std::uint32_t> draw_permutation(std::uint32_t count, Random& random);

// A message of one step.
struct Message {
  std::uint32_t from = 0;  // tasks
  std::uint32_t to = 0;
  Bytes size;

  bool operator==(const Message&) const = default;
};

// All messages of a step, by sender. A task sends `message_bytes` in all, divided evenly, and
// nothing to itself.
[[nodiscard]] std::vector<Message> draw_messages(const Profile& profile, Random& random);
// Those of one task, which draws its partner alone. REQUIRES: task < tasks.
[[nodiscard]] std::vector<Message> draw_messages_of(std::uint32_t task, const Profile& profile,
                                                    Random& random);

}  // namespace vpfs::sim
