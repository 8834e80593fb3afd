#include "control/insight/entitlement_watch.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/wide.h"
#include "control/allocation/max_min.h"
#include "control/insight/entitlement.h"

namespace vpfs::insight {
namespace {

using stage::Measure;

Cost each_second(Cost amount, Duration length) {
  return static_cast<Cost>(std::min<Wide>(
      Wide{amount} * kNanosecondsPerSecond / static_cast<std::uint64_t>(length.count()),
      allocation::kMostAmount));
}

Wish wish_in(const stage::Activity& activity, Duration length) {
  const stage::HistoryReading& reading = *activity.reading;
  Share share;
  if (reading.info->declared != nullptr) share = reading.info->share();
  share.rate = reading.limit;
  Wish wish = wish_of(activity.measures, share, length);
  // It would have more if it had requests waiting.
  if (reading.keeps_no_queue) wish.demand = allocation::kUnbounded;
  return wish;
}

bool was_limited(const stage::Activity& activity, Duration length) {
  return activity.measures.time(Measure::held_by_limit) >= length / 2;
}

}  // namespace

void EntitlementWatch::judge(std::span<const stage::Activity> activities, Duration length,
                             bool by_weight) {
  for (Row& row : rows_) row.entitled.reset();
  was_idle_ = false;
  ++calls_;
  if (length <= Duration::zero()) return;
  std::vector<Wish> wishes;
  Cost sent = 0;
  for (const stage::Activity& activity : activities) {
    const stage::HistoryReading& reading = *activity.reading;
    const std::size_t app = std::to_underlying(reading.id.app);
    if (app >= rows_.size()) rows_.resize(app + 1);
    Row& row = rows_[app];
    Wish wish = wish_in(activity, length);
    const bool is_known =
        row.id == reading.id && row.call + 1 == calls_ && reading.elsewhere >= row.elsewhere;
    if (is_known) wish.elsewhere = reading.elsewhere - row.elsewhere;
    row = {.id = reading.id, .elsewhere = reading.elsewhere, .call = calls_, .entitled = {}};
    sent += activity.measures.of(Measure::cost);
    wishes.push_back(wish);
  }
  if (!by_weight) return;
  const auto wants_all = [](const Wish& wish) { return wish.demand == allocation::kUnbounded; };
  was_idle_ = std::ranges::none_of(wishes, wants_all);
  std::vector<Cost> got(wishes.size());
  entitle(sent, wishes, got);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (was_idle_ && !was_limited(activities[i], length)) continue;
    Row& row = rows_[std::to_underlying(activities[i].reading->id.app)];
    row.entitled = each_second(got[i], length);
  }
}

std::optional<Cost> EntitlementWatch::entitled(stage::VirtualPfsId id) const {
  const std::size_t app = std::to_underlying(id.app);
  if (app >= rows_.size() || rows_[app].id != id) return std::nullopt;
  return rows_[app].entitled;
}

}  // namespace vpfs::insight
