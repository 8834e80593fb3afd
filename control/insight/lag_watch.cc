#include "control/insight/lag_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace vpfs::insight {
namespace {

// A head that is there for all but so much of the time was there all the time: the scheduler is
// told of an arrival a little after it has sent the request before.
constexpr Duration kGap = std::chrono::microseconds(100);
// A reading that is much later than it should be says little.
constexpr Duration kLongest = std::chrono::seconds(10);
// The first part of K, in requests of the flow whose requests move the virtual time the most
// (docs/schedulers.md).
constexpr double kClaim = 16;
// The largest request is forgotten by such a part each second.
constexpr Cost kRecent = 16;

bool has_promise_of_its_own(const stage::VirtualPfsInfo& info) {
  if (info.declared == nullptr) return false;
  const Share share = info.share();
  return share.rate.count > 0 || share.operations > 0 || share.min.count > 0;
}

double weight_of(const stage::VirtualPfsInfo& info) {
  return info.declared == nullptr ? 1 : std::max(1.0, static_cast<double>(info.share().weight));
}

}  // namespace

void LagWatch::compare(const stage::HistoryReading& reading) {
  Known& known = known_[std::to_underlying(reading.id.app)];
  if (known.id != reading.id) known = {.id = reading.id};
  const Duration length = reading.at - known.at;
  const Duration held = reading.held.sum();
  const Cost done = reading.cost_done - known.done;
  const bool has_changed = known.info != reading.info.get();
  const bool was_backlogged = length <= kLongest && held - known.held >= length - kGap;
  known.largest = std::max(reading.largest, known.largest - known.largest / kRecent);
  known.passed_early =
      was_backlogged && (known.passed_early || reading.unscheduled != known.unscheduled);
  done_ += static_cast<double>(done);
  if (was_backlogged && !has_changed && known.has_settled && !known.passed_early &&
      reading.held.limit == known.limited && !has_promise_of_its_own(*reading.info)) {
    const double weight = weight_of(*reading.info);
    backlogged_.push_back({.reading = &reading,
                           .weight = weight,
                           .service = static_cast<double>(done) / weight,
                           .request = static_cast<double>(known.largest) / weight});
    length_ = std::max(length_, length);
    earliest_ = std::min(earliest_, reading.at);
    latest_ = std::max(latest_, reading.at);
  }
  if (has_changed) known.since = reading.at;
  known.info = reading.info.get();
  known.has_settled = reading.oldest > known.since;
  known.at = reading.at;
  known.done = reading.cost_done;
  known.held = held;
  known.limited = reading.held.limit;
  known.unscheduled = reading.unscheduled;
}

void LagWatch::note(const Backlogged& who, const Backlogged& other, double factor, double more) {
  lags_.push_back({.name = who.reading->info->name,
                   .lag = {.lag = who.weight * std::abs(who.service - other.service),
                           .bound = who.weight * (factor * (who.request + other.request) + more)}});
}

std::optional<LagWatch::Fault> LagWatch::judge(std::span<const stage::HistoryReading> readings,
                                               const Promise& promise) {
  lags_.clear();
  backlogged_.clear();
  done_ = 0;
  length_ = {};
  earliest_ = kNever;
  latest_ = TimePoint::min();
  for (const stage::HistoryReading& reading : readings) {
    const std::size_t app = std::to_underlying(reading.id.app);
    if (app >= known_.size()) known_.resize(app + 1);
    compare(reading);
  }
  const bool is_same = std::exchange(scheduler_, promise.scheduler) == promise.scheduler;
  if (!promise.by_weight || !is_same || backlogged_.size() < 2) return std::nullopt;

  double largest = 0;
  for (const Backlogged& each : backlogged_) largest = std::max(largest, each.request);
  const auto depth = static_cast<double>(promise.depth);
  const double factor = depth + 1;
  const double claim = promise.anticipates ? kClaim * largest : 0;
  const auto [least, most] = std::ranges::minmax_element(backlogged_, {}, &Backlogged::service);
  for (const Backlogged& each : backlogged_) {
    const bool is_nearer_the_least = each.service - least->service < most->service - each.service;
    note(each, is_nearer_the_least ? *most : *least, factor, claim);
  }

  // What is done by all while the rows are read, by weight.
  const double meanwhile = done_ * in_seconds(2 * (latest_ - earliest_)) / in_seconds(length_);
  const auto reach = [&](const Backlogged& each) {
    return (factor + depth) * each.request + meanwhile / each.weight;
  };
  const Backlogged& ahead = *std::ranges::max_element(
      backlogged_, {}, [&](const Backlogged& each) { return each.service - reach(each); });
  const Backlogged& behind = *std::ranges::min_element(
      backlogged_, {}, [&](const Backlogged& each) { return each.service + reach(each); });
  const double lag = ahead.service - behind.service;
  if (lag <= reach(ahead) + reach(behind) + claim) return std::nullopt;
  ++faults_;
  return Fault{.ahead = ahead.reading->info->name,
               .behind = behind.reading->info->name,
               .lag = lag,
               .bound = factor * (ahead.request + behind.request) + claim};
}

}  // namespace vpfs::insight
