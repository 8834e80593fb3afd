#include "control/admin/history_keeper.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <spdlog/spdlog.h>

#include "schedulers/policies/anticipation_settings.h"

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

// Weights are promised by one scheduler that is told nothing of other servers.
void HistoryKeeper::judge(StageGate& gate, TimePoint now, const stage::Config& config) {
  insight::LagWatch::Promise promise;
  std::uint64_t depth = 0;
  gate.inspect(now, [&](stage::Stage& stage, TimePoint) {
    depth = stage.lanes()[0].scheduler->depth().requests;
    promise.scheduler = stage.schedulers();
    promise.by_weight =
        stage.lanes().size() == 1 && !stage.bypassed() && !stage.allocations().in_force();
  });
  promise.by_weight = promise.by_weight && config.policy == "sfq" && !config.scheduler_per_target &&
                      config.scheduler.classes.classes.size() <= 1;
  promise.depth = std::max(depth, std::exchange(last_depth_, depth));
  promise.anticipates = config.scheduler.own.of<AnticipationSettings>().on;
  const auto fault = lags_.judge(readings_, promise);
  if (!fault || lags_.faults() > 1) return;
  spdlog::error(
      "shares: {} was served {:.0f} more than {} by cost and weight, and {:.0f} is the most that "
      "the scheduler promises: a fault of vpfs, please report it; further ones are counted only",
      fault->ahead, fault->lag, fault->behind, fault->bound);
}

void HistoryKeeper::entitle(StageGate& gate, TimePoint now,
                            std::span<const stage::Activity> activities) {
  bool by_weight = false;
  gate.inspect(now, [&](stage::Stage& stage, TimePoint at) {
    by_weight = !stage.bypassed() && stage.divides_by_weight(at);
  });
  entitlements_.judge(activities, now - last_, by_weight);
}

void HistoryKeeper::tick(StageGate& gate, TimePoint now, WallTime wall, std::uint64_t rules,
                         const stage::Config& config) {
  if (has_begun_ && now - last_ < kShortest) return;
  read(gate, now);
  judge(gate, now, config);
  lag_history_.add(wall, lags_.lags());
  std::vector<stage::Activity> activities = differences_.since_last(readings_);
  if (has_begun_) {
    entitle(gate, now, activities);
    // The time of day may have been set back.
    const stage::History::Second second = {
        .begin = std::min(last_wall_, wall), .end = wall, .length = now - last_, .rules = rules};
    std::vector<insight::Spell> ended;
    spells_.add(second, activities, ended);
    // A clock that is wrong for a moment ends the day of no entry.
    kept_.ledger.add(std::move(ended), second.begin);
    kept_.history->add(second, activities);
  }
  kept_.file.keep(*kept_.history);
  has_begun_ = true;
  last_ = now;
  last_wall_ = wall;
}

void HistoryKeeper::finish() {
  kept_.history->end_minute();
  kept_.file.hurry();
  kept_.ledger.hurry();
  kept_.file.keep(*kept_.history);
  std::vector<insight::Spell> ended;
  spells_.end_all(ended);
  kept_.ledger.add(std::move(ended), last_wall_);
}

}  // namespace vpfs::control
