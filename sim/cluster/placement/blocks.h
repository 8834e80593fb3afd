#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "sim/cluster/placement/profile.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

// How likely the next block is of each kind, or the end, as weights: in the order of Step, the end
// last.
using BlockWeights = std::array<std::uint32_t, 5>;

// An application of blocks, as the study of ExaNeSt has them (docs/placement.md): all tasks have
// one sequence of blocks. It begins with an input block, in which all data are read, and ends with
// an output block.
struct BlockProfile {
  std::uint32_t tasks = 64;
  // With central data only these many tasks access it, for a group each.
  std::uint32_t readers = 64;
  std::uint32_t writers = 64;
  std::uint32_t devices = 64;  // of the application, unless each task has its own; 1 ... tasks
  // By the kind of the block before. Equal rows have no memory. The first block behind the input
  // is drawn as if a read were before it. An end at 1 of 100 gives 100 blocks in the mean.
  std::array<BlockWeights, 4> next = {
      {{12, 13, 37, 37, 1}, {12, 13, 37, 37, 1}, {12, 13, 37, 37, 1}, {12, 13, 37, 37, 1}}};
  std::uint32_t most_blocks = 1000;
  Duration compute_mean = std::chrono::milliseconds(100);  // exponential, by task
  Bytes data = {1'024'000'000};     // in, and as much out; of all tasks together
  std::uint32_t least_percent = 1;  // of the data, that a block moves; up to 100
  // Messages of a communication: tasks * (tasks + 0 ... 9), in 1 ... 10 rounds. Four of five have
  // 1 ... 100 bytes, the others up to this many.
  Bytes largest_message = {1'000'000};
  // If a task would send more in a communication, in the mean, messages are bundled: one has the
  // bytes of many.
  std::uint32_t most_messages = 1000;
  std::uint32_t memory_percent = 0;  // of accesses that memory answers
  std::uint32_t remote_percent = 0;
};

struct Block {
  Step step = Step::compute;
  std::uint32_t percent = 100;  // of the data, that it moves
  bool is_staging = false;      // the input or the output block: memory answers nothing
};

// REQUIRES: each row has a weight that is not 0; percentages are 1 ... 100.
[[nodiscard]] std::vector<Block> draw_blocks(const BlockProfile& profile, Random& random);

}  // namespace vpfs::sim
