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

// The tasks to which a task sends in a communication (exchange.h).
enum class Pattern : std::uint8_t {
  permutation,  // each to one, and each hears from one, at random in each step
  neighbours,   // to the two beside it, in a ring of all tasks
  all_to_all,   // to one other task after the other, until each has heard from all
  ring,         // n-body: to the next in a ring of all tasks, until all has gone round
};

enum class MessageSizes : std::uint8_t {
  equal,  // what a task sends in a communication, divided evenly
  mixed,  // nine of ten have 1 to 100 bytes, others any size up to the largest
};

// A Markov application: init, then steps that are drawn one by one, then the end. In lockstep all
// tasks have the same sequence. Otherwise each has its own, so that some communicate while others
// read or write. Either way the n-th communication of a task is the n-th one of all tasks that have
// so many.
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
  // A task accesses so many bytes in a step, or from `least_io_percent` of them up, at random by
  // step.
  Bytes io_bytes = {64 * kMiB};
  std::uint32_t least_io_percent = 100;
  // A task's data. Before its first step, at most this much is staged in, and no more than it
  // reads. At last, at most this much is staged out, and no more than it wrote.
  Bytes data_bytes = {256 * kMiB};
  // That a task sends in a communication; of mixed sizes: the largest message.
  Bytes message_bytes = {16 * kMiB};
  MessageSizes sizes = MessageSizes::equal;
  std::uint32_t messages = 1;  // to each partner, one after the other; at least 1
  Pattern pattern = Pattern::permutation;
  std::uint32_t memory_percent = 0;  // of accesses that the memory of the device's node answers
  // The part of accesses that do not go to the device of the task's own node, if that has one.
  std::uint32_t remote_percent = 0;
};

// REQUIRES: compute + read + write <= 1000.
[[nodiscard]] std::vector<Step> draw_steps(const Profile& profile, Random& random);

// Each number below `count` once, in random order.
[[nodiscard]] std::vector<std::uint32_t> draw_permutation(std::uint32_t count, Random& random);

}  // namespace vpfs::sim
