#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "schedulers/request.h"

namespace vpfs::allocation {

// What a coordinator divides. Each is divided by itself.
struct Amounts {
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  std::uint64_t metadata_operations = 0;

  bool operator==(const Amounts&) const = default;
};

using Microseconds = std::chrono::duration<std::uint64_t, std::micro>;

// What a stage says of a flow's queue there, since a beginning.
struct QueueTimes {
  Microseconds limited = {};        // a limit held its head
  Microseconds present = {};        // it had requests queued or at the server, as the following two
  Microseconds crowded = {};        // and something was held back for the depth
  Microseconds without_queue = {};  // and nothing of it was queued

  bool operator==(const QueueTimes&) const = default;
};

// A live job on one stage, and what it did there in the cycle that has just ended.
struct Pair {
  std::uint32_t id = 0;     // a small number, the same in all cycles; another pair may get it later
  std::uint32_t job = 0;    // jobs are numbered in the order of their names, as texts
  std::uint32_t stage = 0;  // stages likewise
  std::uint32_t stages = 1;         // that the stage stands for: an aggregator for those below it
  std::uint32_t weight = 1;         // of the job
  bool takes_caps = true;           // else the stage cannot enforce them, and is not sent any
  bool takes_metadata_caps = true;  // else it has no part of metadata operations
  Amounts most;                     // of the job on all stages, each second; zero: no bound
  Amounts arrived;
  Duration limited = {};  // for how long the allocated limit held its head
  Cost done = 0;          // in all cycles so far, from the first one that had the pair
  QueueTimes times;       // likewise
};

// What a pair is allowed. Nothing: no limit, or no total.
struct Grant {
  std::optional<std::uint64_t> bytes;  // each second, as the following two
  std::optional<std::uint64_t> operations;
  std::optional<std::uint64_t> metadata_operations;
  std::optional<Cost> elsewhere_total;  // the cost that all other stages did for the job

  bool operator==(const Grant&) const = default;
};

// Where to find the amounts of a resource.
struct Resource {
  std::string_view name;
  std::uint64_t Amounts::*amount;
  std::optional<std::uint64_t> Grant::*grant;
};
inline constexpr std::array<Resource, 3> kResources = {
    {{"bytes", &Amounts::bytes, &Grant::bytes},
     {"operations", &Amounts::operations, &Grant::operations},
     {"metadata_operations", &Amounts::metadata_operations, &Grant::metadata_operations}}};

// Whether a pair has a part of a resource. It has none of metadata operations if its stage does not
// limit these: the stage does not see what it passes on. Each pair has a part of every other
// resource: a stage that cannot enforce a cap uses it all the same.
[[nodiscard]] inline bool has_part(const Pair& pair, const Resource& resource) {
  return pair.takes_metadata_caps || resource.grant != &Grant::metadata_operations;
}

// Calls `use(first, count)` for each job: its pairs, which are together.
template <typename Use>
void for_each_job(std::span<const Pair> pairs, Use use) {
  for (std::size_t first = 0; first < pairs.size();) {
    std::size_t end = first + 1;
    while (end < pairs.size() && pairs[end].job == pairs[first].job) ++end;
    use(first, end - first);
    first = end;
  }
}

}  // namespace vpfs::allocation
