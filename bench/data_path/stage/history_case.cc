#include "bench/data_path/stage/history_case.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "bench/data_path/stage/used_stage.h"
#include "control/insight/past.h"
#include "stage/history/differences.h"
#include "stage/history/history.h"

namespace vpfs {
namespace {

using std::chrono::seconds;

constexpr std::size_t kReadAtOnce = 8;  // as control::HistoryKeeper
constexpr seconds kDay = std::chrono::hours(24);

// A history of a day.
class Day {
 public:
  Day() {
    std::vector<stage::HistoryReading> readings(stage::HistoryLevel::kBusiest);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      auto info = std::make_shared<stage::VirtualPfsInfo>();
      info->name = "job-" + std::to_string(i);
      readings[i].id = {.app = AppId{static_cast<std::uint32_t>(i)}, .generation = 0};
      readings[i].info = std::move(info);
    }
    for (seconds second(0); second < kDay; ++second) {
      std::vector<stage::Activity> activities;
      for (const stage::HistoryReading& each : readings) {
        stage::Activity& activity = activities.emplace_back();
        activity.reading = &each;
        for (std::uint64_t& value : activity.measures) value = 1'000'000;
      }
      const auto begin = WallTime(second);
      history_.add({.begin = begin, .end = begin + seconds(1), .length = seconds(1), .rules = 0},
                   activities);
    }
  }
  [[nodiscard]] insight::Past last(seconds time) const {
    const auto end = WallTime(kDay);
    return insight::past_of(history_, end - time, end);
  }

 private:
  stage::History history_;
};

}  // namespace

std::vector<RowsSample> measure_history(std::uint32_t rounds) {
  std::vector<RowsSample> samples;
  for (const std::size_t count : kCounts) {
    UsedStage used(count);
    stage::History history;
    stage::ReadingDifferences differences;
    std::vector<stage::HistoryReading> readings;
    std::vector<double> whole;
    std::vector<double> longest;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      used.use(round % 100 == 0 ? count : 1);
      readings.clear();
      Watch::duration most = {};
      const Watch::time_point begin = Watch::now();
      for (std::size_t first = 0; first <= count; first += kReadAtOnce) {
        most = std::max(most, used.locked([&](stage::Stage& stage) {
          stage.read_history(first, kReadAtOnce, TimePoint{}, used.now(), readings);
        }));
      }
      std::vector<stage::Activity> activities = differences.since_last(readings);
      const auto time = WallTime(seconds(round));
      history.add({.begin = time, .end = time + seconds(1), .length = seconds(1), .rules = 0},
                  activities);
      whole.push_back(nanoseconds(Watch::now() - begin));
      longest.push_back(nanoseconds(most) / 1000);
    }
    samples.push_back({.virtual_pfs = count,
                       .ns_p50 = quantile(whole, 0.5),
                       .ns_p99 = quantile(whole, 0.99),
                       .lock_us_max = quantile(longest, 0.5)});
  }
  return samples;
}

std::vector<PastSample> measure_past(std::uint32_t rounds) {
  const Day day;
  std::vector<PastSample> samples;
  for (const seconds time : {seconds(600), seconds(3600), kDay}) {
    std::vector<double> took;
    for (std::uint32_t round = 0; round < std::max(rounds / 10, 3U); ++round) {
      const Watch::time_point begin = Watch::now();
      const insight::Past past = day.last(time);
      took.push_back(nanoseconds(Watch::now() - begin) / 1e6);
      if (past.of.size() != stage::HistoryLevel::kBusiest) return {};  // it is used
    }
    samples.push_back(
        {.seconds = time.count(), .ms_p50 = quantile(took, 0.5), .ms_p99 = quantile(took, 0.99)});
  }
  return samples;
}

}  // namespace vpfs
