#include "stage/history/differences.h"

#include <algorithm>
#include <utility>

namespace vpfs::stage {
namespace {

Measures sums_of(const HistoryReading& reading) {
  Measures sums;
  sums.of(Measure::read_bytes) = reading.read.count;
  sums.of(Measure::written_bytes) = reading.written.count;
  sums.of(Measure::operations) = reading.done;
  sums.of(Measure::arrivals) = reading.arrived;
  sums.of(Measure::cost) = reading.cost;
  sums.of(Measure::waited) = reading.waited.count();
  sums.of(Measure::served) = reading.served.count();
  sums.of(Measure::held_by_limit) = microseconds_of(reading.held.limit);
  sums.of(Measure::held_by_share) = microseconds_of(reading.held.share);
  sums.of(Measure::held_by_depth) = microseconds_of(reading.held.depth);
  sums.of(Measure::held_by_class) = microseconds_of(reading.held.traffic_class);
  sums.of(Measure::held_by_kept_slot) = microseconds_of(reading.held.kept_slot);
  sums.of(Measure::slow_client) = microseconds_of(reading.slow_client);
  return sums;
}

// What a sum has grown by. One that is smaller than before has begun anew, except those of held
// times: while the reason is not known they move between reasons.
std::uint64_t growth(Measure what, std::uint64_t before, std::uint64_t now) {
  if (now >= before) return now - before;
  return what == Measure::waited || what == Measure::served ? now : 0;
}

// Another scheduler begins at zero.
Loans since(const Loans& before, const Loans& now) {
  const bool began_anew = now.lent < before.lent || now.borrowed < before.borrowed;
  if (began_anew) return now;
  return {.lent = now.lent - before.lent, .borrowed = now.borrowed - before.borrowed};
}

}  // namespace

std::vector<Activity> ReadingDifferences::since_last(std::span<const HistoryReading> readings) {
  std::vector<Activity> made;
  for (const HistoryReading& reading : readings) {
    const std::size_t app = std::to_underlying(reading.id.app);
    if (app >= known_.size()) known_.resize(app + 1);
    Known& known = known_[app];
    const Measures sums = sums_of(reading);
    const bool is_known = known.is_known && known.id == reading.id;
    if (is_known || has_begun_) {
      const Loans loans = is_known ? since(known.loans, reading.loans) : reading.loans;
      Activity activity = {.reading = &reading, .measures = {}, .loans = loans};
      Measures& measures = activity.measures;
      for (std::size_t i = 0; i < kSummedMeasures; ++i) {
        const std::uint64_t before = is_known ? known.sums[i] : 0;
        measures[i] = growth(static_cast<Measure>(i), before, sums[i]);
      }
      measures.of(Measure::longest_wait) = microseconds_of(reading.longest_wait);
      measures.of(Measure::queued) = reading.queued.count;
      const auto summed = std::span(measures).first(kSummedMeasures);
      const bool did_something = std::ranges::any_of(summed, [](auto value) { return value > 0; });
      const bool has_loans = loans.lent + loans.borrowed > 0;
      if (did_something || has_loans || reading.queued.count > 0) made.push_back(activity);
    }
    known = {.id = reading.id, .is_known = true, .sums = sums, .loans = reading.loans};
  }
  has_begun_ = true;
  return made;
}

}  // namespace vpfs::stage
