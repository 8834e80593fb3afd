#include "control/admin/history_keeper.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace vpfs::control {
namespace {

constexpr std::size_t kReadAtOnce = 8;  // rows, per lock
constexpr Duration kShortest = std::chrono::milliseconds(100);

}  // namespace

void HistoryKeeper::read(StageGate& gate, TimePoint now) {
  readings_.clear();
  std::size_t first = 0;
  bool is_done = false;
  while (!is_done) {
    gate.inspect(now, [&](stage::Stage& stage, TimePoint at) {
      stage.read_history(first, kReadAtOnce, last_, at, readings_);
      is_done = first + kReadAtOnce >= stage.rows();
    });
    first += kReadAtOnce;
    gate.give_way();
  }
}

void HistoryKeeper::tick(StageGate& gate, TimePoint now, WallTime wall, std::uint64_t rules) {
  if (has_begun_ && now - last_ < kShortest) return;
  read(gate, now);
  std::vector<stage::Activity> activities = differences_.since_last(readings_);
  if (has_begun_) {
    // The time of day may have been set back.
    kept_.history->add(
        {.begin = std::min(last_wall_, wall), .end = wall, .length = now - last_, .rules = rules},
        activities);
  }
  kept_.file.keep(*kept_.history);
  has_begun_ = true;
  last_ = now;
  last_wall_ = wall;
}

void HistoryKeeper::finish() {
  kept_.history->end_minute();
  kept_.file.keep(*kept_.history);
}

}  // namespace vpfs::control
