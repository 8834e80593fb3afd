#include "bench/data_path/stage/rows_case.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "stage/stage.h"

namespace vpfs {
namespace {

using Watch = std::chrono::steady_clock;

constexpr const char* kTemplate = "job-{jobid}";
constexpr std::size_t kCounts[] = {100, 1000, 10'000};
constexpr std::size_t kBlock = stage::DenseRows<stage::Counters>::kBlock;
constexpr std::size_t kRetired = 4;

double quantile(std::vector<double>& values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

double nanoseconds(Watch::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// A stage whose virtual PFSes have each served a read of 4 KiB.
class UsedStage {
 public:
  explicit UsedStage(std::size_t count) : stage_(config_of(count), now_) { use(count); }

  void use(std::size_t count) {
    std::vector<stage::Held*> let_go;
    for (std::size_t i = 0; i < count; ++i) {
      const stage::VirtualPfsId id =
          stage_.find({.virtual_pfs = "job-" + std::to_string(i), .declared_name = kTemplate}, now_)
              .id;
      stage::Held io;
      io.app = id.app;
      io.generation = id.generation;
      io.size = {4 * kKiB};
      io.cost = io.size.count;
      io.arrival = now_;
      stage_.arrive(io, now_);
      (void)stage_.release(now_, let_go);
      stage::Stage::took_over(io);
      now_ += std::chrono::microseconds(50);
      stage_.end(io, {.moved = io.size}, now_);
      let_go.clear();
    }
  }

  // Calls work(stage) under the lock, and returns how long the lock was held.
  template <typename Work>
  Watch::duration locked(Work&& work) {
    const std::lock_guard lock(mutex_);
    const Watch::time_point begin = Watch::now();
    work(stage_);
    return Watch::now() - begin;
  }
  [[nodiscard]] TimePoint now() const { return now_; }
  void pass(Duration time) { now_ += time; }

 private:
  static stage::Config config_of(std::size_t count) {
    stage::Config config;
    config.virtual_pfs = {{.name = kTemplate, .share = {}}};
    config.most_virtual_pfs = count;
    return config;
  }

  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  std::mutex mutex_;
  stage::Stage stage_;
};

}  // namespace

std::vector<RowsSample> measure_copy(std::uint32_t rounds) {
  std::vector<RowsSample> samples;
  for (const std::size_t count : kCounts) {
    UsedStage used(count);
    std::vector<stage::CounterRow> rows(count + 1);
    std::vector<double> whole;
    std::vector<double> longest;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      Watch::duration most = {};
      const Watch::time_point begin = Watch::now();
      for (std::size_t first = 0; first < rows.size(); first += kBlock) {
        const auto block = std::span(rows).subspan(first, std::min(kBlock, rows.size() - first));
        most = std::max(most, used.locked([&](stage::Stage& stage) {
          (void)stage.copy_counters(first, block, used.now());
        }));
      }
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

std::vector<RowsSample> measure_retire(std::uint32_t rounds) {
  std::vector<RowsSample> samples;
  for (const std::size_t count : kCounts) {
    std::vector<double> each;
    std::vector<double> longest;
    UsedStage used(count);
    const std::uint32_t few =
        std::max<std::uint32_t>(rounds * 100 / static_cast<std::uint32_t>(count), 3);
    for (std::uint32_t round = 0; round < std::min(few, rounds); ++round) {
      if (round > 0) used.use(count);
      used.pass(std::chrono::hours(2));
      Watch::duration most = {};
      for (std::size_t first = 0; first <= count; first += kBlock) {
        most = std::max(
            most, used.locked([&](stage::Stage& stage) { stage.find_idle(kBlock, used.now()); }));
      }
      for (std::size_t retired = 0; retired < count; retired += kRetired) {
        const Watch::duration time =
            used.locked([&](stage::Stage& stage) { stage.retire(kRetired, used.now()); });
        most = std::max(most, time);
        each.push_back(nanoseconds(time) / static_cast<double>(kRetired));
      }
      longest.push_back(nanoseconds(most) / 1000);
    }
    samples.push_back({.virtual_pfs = count,
                       .ns_p50 = quantile(each, 0.5),
                       .ns_p99 = quantile(each, 0.99),
                       .lock_us_max = quantile(longest, 0.5)});
  }
  return samples;
}

}  // namespace vpfs
