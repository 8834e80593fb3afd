#include "bench/data_path/stage/rows_case.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "bench/data_path/stage/used_stage.h"

namespace vpfs {
namespace {

constexpr std::size_t kBlock = stage::DenseRows<stage::Counters>::kBlock;
constexpr std::size_t kRetired = 4;

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
