#include "control/allocation/flow_base.h"

#include <utility>

namespace vpfs::allocation {
namespace {

// Makes the differences of one report.
class Subtraction {
 public:
  Subtraction(std::uint64_t most, FlowBase::Lie& lie) : most_(most), lie_(lie) {}

  std::uint64_t operator()(std::string_view counter, std::uint64_t now, std::uint64_t before) {
    if (now < before) return reject(counter, "went back", now, before);
    if (now - before > most_) return reject(counter, "jumped", now, before);
    return now - before;
  }
  [[nodiscard]] bool is_sound() const { return is_sound_; }

 private:
  std::uint64_t reject(std::string_view counter, std::string_view what, std::uint64_t now,
                       std::uint64_t before) {
    is_sound_ = false;
    lie_ = {.counter = counter, .what = what, .before = before, .now = now};
    return 0;
  }

  std::uint64_t most_;
  FlowBase::Lie& lie_;
  bool is_sound_ = true;
};

}  // namespace

bool FlowBase::take(const FlowCounters& counters, std::uint64_t most, Difference& difference,
                    Lie& lie) {
  difference = {};
  const FlowCounters before = std::exchange(before_, counters);
  if (!std::exchange(is_set_, true)) return true;
  Subtraction subtract(most, lie);
  const auto time = [&subtract](std::string_view counter, Microseconds now, Microseconds earlier) {
    return Microseconds(subtract(counter, now.count(), earlier.count()));
  };
  const Difference found = {
      .arrived = {.bytes = subtract("arrived_bytes", counters.arrived_bytes, before.arrived_bytes),
                  .operations = subtract("arrived_requests", counters.arrived_requests,
                                         before.arrived_requests),
                  .metadata_operations =
                      subtract("metadata_operations", counters.metadata_operations,
                               before.metadata_operations)},
      .times = {.limited = time("limited_us", counters.limited, before.limited),
                .present = time("present_us", counters.present, before.present),
                .crowded = time("crowded_us", counters.crowded, before.crowded),
                .without_queue =
                    time("without_queue_us", counters.without_queue, before.without_queue)},
      .done = subtract("done_cost", counters.done_cost, before.done_cost)};
  if (subtract.is_sound()) difference = found;
  return subtract.is_sound();
}

}  // namespace vpfs::allocation
