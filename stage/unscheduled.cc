// The part of Stage for requests that no scheduler holds: exempt ones, those that are let pass, and
// all during a bypass.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stage/stage.h"

namespace vpfs::stage {

void Stage::queue_unscheduled(Held& io) {
  io.order = ++unscheduled_order_;
  unscheduled_.push_back(io);
  ++unscheduled_queued_;
}

void Stage::release_unscheduled(TimePoint now, std::vector<Held*>& let_go) {
  while (!unscheduled_.empty()) {
    auto& io = static_cast<Held&>(*unscheduled_.front());
    unscheduled_.remove(io);
    --unscheduled_queued_;
    ++unscheduled_outstanding_;
    io.sent = now;
    dispatch(io, now, let_go);
    table_[io.app].histograms->unscheduled.add(io.size);
  }
}

void Stage::let_pass(Held& io, TimePoint now) {
  if (io.state != Held::State::queued || io.unscheduled) return;
  clients_.withdrawn(io);
  if (recorder_ != nullptr) io.noted.reason = reason_so_far(io, now);
  scheduler_of(io).let_pass(io, now);
  Counters& counters = table_.counters(io.app);
  counters.cost_sent += io.cost;
  counters.passed_limit += io.passed_limit ? 1 : 0;
  io.unscheduled = io.let_pass = true;
  queue_unscheduled(io);
}

void Stage::bypass(bool on, TimePoint now) {
  if (bypass_ == on) return;
  bypass_ = on;
  if (!on) {
    notices_.push_back(
        fmt::format("bypass is off: requests are scheduled again; {} that took no slot are still "
                    "at the data server",
                    unscheduled_outstanding_));
    return;
  }
  std::vector<Held*> all;
  const auto add = [&](IoRequest& request) { all.push_back(static_cast<Held*>(&request)); };
  for (Lanes::Lane& lane : lanes_) {
    while (IoRequest* const request = lane.scheduler->any_queued()) {
      lane.scheduler->withdraw(*request, now);
      add(*request);
    }
  }
  notices_.push_back(
      fmt::format("bypass is on: no share, limit, class or depth counts until it is off; {} "
                  "requests that were held go now",
                  all.size()));
  while (!unscheduled_.empty()) {
    add(*unscheduled_.front());
    unscheduled_.remove(*unscheduled_.front());
  }
  unscheduled_queued_ = 0;
  std::ranges::sort(
      all, {}, [](const Held* io) { return std::tuple(io->arrival, !io->unscheduled, io->order); });
  for (Held* io : all) {
    if (!std::exchange(io->unscheduled, true)) clients_.withdrawn(*io);
    queue_unscheduled(*io);
  }
}

}  // namespace vpfs::stage
