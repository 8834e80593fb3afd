// The part of Stage that a history reads.
#include "stage/history_reading.h"

#include <algorithm>
#include <utility>

#include "stage/stage.h"

namespace vpfs::stage {
namespace {

BytesPerSecond limit_of(const VirtualPfsInfo& info, const Limits& allocated) {
  const BytesPerSecond own = info.declared != nullptr ? info.share().rate : BytesPerSecond{};
  const BytesPerSecond from_outside = allocated.bytes.value_or(BytesPerSecond{});
  if (own.count == 0 || from_outside.count == 0) return own.count == 0 ? from_outside : own;
  return std::min(own, from_outside);
}

}  // namespace

void Stage::read_history(std::size_t first, std::size_t count, TimePoint since, TimePoint now,
                         std::vector<HistoryReading>& to) {
  const std::size_t end = std::min(first + count, rows());
  for (std::size_t row = first; row < end; ++row) {
    const AppId app{static_cast<std::uint32_t>(row)};
    const VirtualPfs& pfs = table_[app];
    const bool is_used = pfs.requests > 0 || pfs.last_used >= since;
    if (table_.is_there(app) && is_used) to.push_back(read_history(app, now));
  }
}

HistoryReading Stage::read_history(AppId app, TimePoint now) {
  const VirtualPfs& pfs = table_[app];
  const Counters& counters = table_.counters(app);
  HistoryReading made = {.id = table_.id_of(app),
                         .info = pfs.info,
                         .rule = {},
                         .jobid = std::string(table_.jobid(app)),
                         .account = std::string(table_.account(app)),
                         .read = {counters.done.of(IoKind::read).bytes},
                         .written = {counters.done.of(IoKind::write).bytes},
                         .done = counters.done.all().requests,
                         .arrived = counters.arrived.all().requests,
                         .cost = counters.cost_sent,
                         .cost_done = counters.cost_done,
                         .elsewhere = allocations_.served_elsewhere(app),
                         .unscheduled = 0,
                         .waited = {},
                         .served = {},
                         .held = counters.held,
                         .loans = {},
                         .slow_client = counters.slow_client,
                         .longest_wait = {},
                         .largest = 0,
                         .limit = limit_of(*pfs.info, allocations_.limits(app)),
                         .keeps_no_queue = judge_share(app, now).keeps_no_queue,
                         .at = now,
                         .oldest = kNever,
                         .queued = {counters.queued.bytes}};
  if (const RuleRows::Row* const rule = rules_.row(pfs.last_rule)) made.rule = rule->name;
  if (pfs.histograms) {
    made.waited = pfs.histograms->wait.sum();
    made.served = pfs.histograms->service.sum();
    made.unscheduled = pfs.histograms->unscheduled.requests;
    made.longest_wait = std::exchange(pfs.histograms->longest_wait, {});
    made.largest = std::exchange(pfs.histograms->largest, 0);
  }
  for (const Lanes::Lane& lane : lanes_) {
    made.held += lane.scheduler->held(app, now);
    made.loans += lane.scheduler->loans(app);
    const IoRequest* const oldest = lane.scheduler->flow(app).oldest;
    if (oldest == nullptr) continue;
    made.oldest = std::min(made.oldest, oldest->arrival);
    made.longest_wait = std::max(made.longest_wait, now - oldest->arrival);
  }
  if (const auto wait = waits_for_client(app)) made.slow_client += now - wait->since;
  return made;
}

}  // namespace vpfs::stage
