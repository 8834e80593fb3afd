// The part of Stage that charges requests for what they did, and frees their slots.
#include <algorithm>

#include "base/check.h"
#include "stage/stage.h"

namespace vpfs::stage {
namespace {

bool is_at_server(const Held& io) {
  return io.state == Held::State::outstanding || io.state == Held::State::given_up;
}

}  // namespace

void Stage::complete(Held& io, Cost cost, TimePoint now) {
  Counters& counters = table_.counters(io.app);
  counters.outstanding.take(io.size);
  if (io.unscheduled) {
    --unscheduled_outstanding_;
    if (io.let_pass) counters.cost_done += cost;
    return;
  }
  counters.cost_done += cost;
  Histograms& histograms = *table_[io.app].histograms;
  histograms.largest = std::max(histograms.largest, cost);
  clients_.finished(io);
  lanes_[io.lane].speed.done(cost);
  if (io.scheduler == schedulers_) return scheduler_of(io).complete(io, cost, now);
  scheduler_of(io).vacate(io.cost);  // an earlier scheduler released it
}

void Stage::end(Held& io, const Ended& how, TimePoint now) {
  VPFS_DEBUG_ASSERT(table_.is_there(io.virtual_pfs()));
  VirtualPfs& pfs = table_[io.app];
  Counters& counters = table_.counters(io.app);
  const bool has_slot = io.state != Held::State::given_up;
  VPFS_ASSERT(!has_slot || io.state == Held::State::outstanding);
  if (recorder_ != nullptr) {
    const RecordedEnd end = how.refused  ? RecordedEnd::refused
                            : how.failed ? RecordedEnd::failed
                                         : RecordedEnd::done;
    note_end(io, end, how.moved, now);
  }
  if (how.refused) {
    counters.refused.of(io.kind).add(io.size);
  } else {
    counters.done.of(io.kind).add(how.moved);
    if (how.failed) counters.failed.of(io.kind).add(how.moved);
    pfs.histograms->statistics.record(io.kind, how.moved, now - io.arrival, now);
    if (has_slot) pfs.histograms->service.record(now - io.sent);
    if (io.size_is_estimated && !how.failed) pfs.read_yield.learn(io.asked, how.moved);
    charge_up_to(io, how.moved, now);
  }
  if (has_slot) complete(io, std::min(cost_model_.cost(io.kind, how.moved), io.cost), now);
  leave(io, now);
  io.state = Held::State::parked;
}

void Stage::has_moved(Held& io, Bytes moved, TimePoint now) {
  VPFS_ASSERT(is_at_server(io));
  charge_up_to(io, moved, now);
}

void Stage::charge_up_to(Held& io, Bytes moved, TimePoint now) {
  const Bytes counted = io.size + io.more_size;
  const Cost charged = io.cost + io.more_cost;
  const Cost cost = cost_model_.cost(io.kind, moved);
  if (io.unscheduled || moved <= counted || cost <= charged) return;
  const Scheduler::Excess more = {.cost = cost - charged, .size = moved - counted};
  io.more_cost += more.cost;
  io.more_size += more.size;
  // A later scheduler does not know the request, not even its traffic class.
  if (io.scheduler == schedulers_) scheduler_of(io).charge_more(io, more, now);
  Counters& counters = table_.counters(io.app);
  counters.cost_sent += more.cost;
  counters.cost_done += more.cost;
}

bool Stage::give_up_slot(Held& io, TimePoint now) {
  if (io.state != Held::State::outstanding || io.unscheduled) return false;
  ++table_.counters(io.app).given_up;
  complete(io, io.cost, now);
  io.state = Held::State::given_up;
  return true;
}

void Stage::abandon(Held& io, TimePoint now, Bytes moved) {
  if (recorder_ != nullptr && io.is_counted) note_end(io, RecordedEnd::abandoned, moved, now);
  // An estimate holds only for requests whose end shows what they moved.
  const Bytes most = io.size_is_estimated ? std::max(io.asked, moved) : moved;
  if (is_at_server(io)) charge_up_to(io, most, now);
  remove(io, io.cost, now);
}

void Stage::withdraw(Held& io, TimePoint now) {
  if (recorder_ != nullptr && io.is_counted) note_end(io, RecordedEnd::abandoned, {}, now);
  remove(io, std::min(cost_model_.cost(io.kind, {}), io.cost), now);
}

// `cost` is what it costs if it has been released.
void Stage::remove(Held& io, Cost cost, TimePoint now) {
  switch (io.state) {
    case Held::State::parked:
    case Held::State::given_up:
    case Held::State::excess:
      break;
    case Held::State::queued:
      if (!io.unscheduled) clients_.withdrawn(io);
      leave_queue(io, now);
      break;
    case Held::State::released:
    case Held::State::outstanding:
      complete(io, cost, now);
      break;
  }
  leave(io, now);
  io.state = Held::State::parked;
}

}  // namespace vpfs::stage
