#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stage/history/history.h"

namespace vpfs::stage {

// Makes seconds of a history in virtual time.
class Activities {
 public:
  // A virtual PFS; the same number and generation is the same one.
  const HistoryReading& reading(std::uint32_t app, std::string name = "",
                                std::uint32_t generation = 0) {
    for (const HistoryReading& each : readings_) {
      if (std::to_underlying(each.id.app) == app && each.id.generation == generation) return each;
    }
    HistoryReading& made = readings_.emplace_back();
    made.id = {.app = AppId{app}, .generation = generation};
    auto info = std::make_shared<VirtualPfsInfo>();
    info->name = name.empty() ? fmt::format("vpfs-{}", app) : std::move(name);
    made.info = std::move(info);
    return made;
  }

  // In the second that comes next, it moves so many bytes.
  void moves(const HistoryReading& who, std::uint64_t bytes) {
    Activity& activity = next_.emplace_back();
    activity.reading = &who;
    activity.measures.of(Measure::read_bytes) = bytes;
    activity.measures.of(Measure::cost) = bytes;
    activity.measures.of(Measure::operations) = 1;
  }
  void does(const HistoryReading& who, const Measures& what) {
    next_.push_back({.reading = &who, .measures = what});
  }
  void end_second(History& history) {
    const WallTime end = now_ + std::chrono::seconds(1);
    history.add({.begin = now_, .end = end, .length = std::chrono::seconds(1), .rules = rules_},
                next_);
    now_ = end;
    next_.clear();
  }

  // The program was down for so long.
  void is_down(std::chrono::seconds time) { now_ += time; }

  [[nodiscard]] WallTime now() const { return now_; }
  void set_rules(std::uint64_t version) { rules_ = version; }

 private:
  std::deque<HistoryReading> readings_;
  std::vector<Activity> next_;
  WallTime now_{std::chrono::hours(24 * 365)};
  std::uint64_t rules_ = 1;
};

}  // namespace vpfs::stage
