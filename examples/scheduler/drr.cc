#include "drr.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <vpfs/base/config_reader.h>

namespace example {
namespace {

using namespace vpfs;

std::unique_ptr<Policy> make(const SchedulerSettings& settings, RateLimits&, Scheduler::Part) {
  return std::make_unique<Drr>(settings.own.of<DrrSettings>());
}

// `scheduler: {drr: {quantum: 128 KiB}}`
void read(ConfigReader& scheduler, SchedulerSettings& settings, bool /*is_chosen*/) {
  ConfigReader drr = scheduler.child("drr");
  drr.get("quantum", &settings.own.of<DrrSettings>().quantum, {kKiB}, {kGiB});
}

std::string summary(const SchedulerSettings& settings) {
  return "a turn is " + to_string(settings.own.of<DrrSettings>().quantum) + " of cost x weight";
}

}  // namespace

constinit const PolicyKind Drr::kKind = {
    .name = "drr", .make = make, .read = read, .summary = summary};

Result<void> Drr::set_share(AppId app, const Share& share, TimePoint /*now*/) {
  flows_.grow(app);
  flows_[std::to_underlying(app)].quantum = settings_.quantum.count * share.weight;
  return {};
}

// The last of the ring, just before the first.
void Drr::join(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (in_ring_++ == 0) {
    first_ = flow.next = flow.before = index;
    return;
  }
  flow.next = first_;
  flow.before = flows_[first_].before;
  flows_[flow.before].next = index;
  flows_[first_].before = index;
}

void Drr::leave(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.deficit = 0;
  flow.has_quantum = false;
  flows_[flow.before].next = flow.next;
  flows_[flow.next].before = flow.before;
  if (first_ == index) first_ = flow.next;
  if (--in_ring_ == 0) first_ = kNone;
}

void Drr::enqueue(IoRequest& request, TimePoint now) {
  if (flows_.push_back(flows_.of(request), request) != Joined::as_head) return;
  const auto index = std::to_underlying(request.app);
  flows_.holds().wait_for_turn(index, now);
  join(index);
}

Policy::Head Drr::head(TimePoint /*now*/) {
  if (in_ring_ == 0) return {};
  for (std::size_t turns = 0;; ++turns) {
    Flow& flow = flows_[first_];
    if (!std::exchange(flow.has_quantum, true)) flow.deficit += flow.quantum;
    if (flow.queue.front()->cost <= flow.deficit) return {.request = flow.queue.front()};
    flow.has_quantum = false;
    first_ = flow.next;
    if (turns == in_ring_) pass_rounds();
  }
}

// All rounds in which no flow could send anything, at once.
void Drr::pass_rounds() {
  std::uint64_t rounds = UINT64_MAX;
  std::uint32_t index = first_;
  for (std::size_t i = 0; i < in_ring_; ++i, index = flows_[index].next) {
    const Flow& flow = flows_[index];
    const std::uint64_t lacks = flow.queue.front()->cost - flow.deficit;
    rounds = std::min(rounds, (lacks - 1) / flow.quantum);
  }
  for (std::size_t i = 0; i < in_ring_; ++i, index = flows_[index].next) {
    flows_[index].deficit += rounds * flows_[index].quantum;
  }
}

void Drr::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  flow.deficit -= request.cost;
  flows_.dispatch(flow, request, now);
  flow.queue.empty() ? leave(index) : flows_.holds().wait_for_turn(index, now);
}

// A request that did less than it was charged gives the rest back.
void Drr::complete(const IoRequest& request, Cost cost, TimePoint /*now*/) {
  Flow& flow = flows_.of(request);
  flow.account.completed();
  if (!flow.queue.empty()) flow.deficit += request.cost - cost;
}

void Drr::withdraw(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  if (flow.queue.empty()) {
    leave(index);
  } else if (was_head) {
    flows_.holds().wait_for_turn(index, now);
  }
}

std::uint64_t Drr::place_of(std::uint32_t index) const {
  std::uint64_t place = 0;
  for (std::uint32_t at = first_; at != index; at = flows_[at].next) ++place;
  return place;
}

void Drr::save(AppId app, TimePoint /*now*/, SavedState& to) {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size() || flows_[index].queue.empty()) return;
  to.set("drr_deficit", flows_[index].deficit);
  to.set("drr_has_quantum", std::uint64_t{flows_[index].has_quantum});
  to.set("drr_place", place_of(index));
}

void Drr::restore(AppId app, const SavedState& from, TimePoint /*now*/) {
  const auto index = std::to_underlying(app);
  if (index >= flows_.size() || flows_[index].queue.empty()) return;
  Flow& flow = flows_[index];
  // What the process before can have had at most: the state comes from outside.
  flow.deficit = std::min(from.number("drr_deficit"), kMaxCost + flow.quantum);
  flow.has_quantum = from.number("drr_has_quantum") == 1;
  flow.place = from.number("drr_place", UINT64_MAX);
}

void Drr::restored(TimePoint /*now*/) {
  std::vector<std::uint32_t> ring;
  for (std::uint32_t at = first_; ring.size() < in_ring_; at = flows_[at].next) ring.push_back(at);
  std::ranges::stable_sort(ring, {}, [this](std::uint32_t index) { return flows_[index].place; });
  in_ring_ = 0;
  for (const std::uint32_t index : ring) join(index);
}

IoRequest* Drr::any_queued() const {
  return in_ring_ == 0 ? nullptr : flows_[first_].queue.front();
}

WaitReason Drr::why_waiting(AppId app, TimePoint /*now*/) const {
  return {.reason = std::to_underlying(app) == first_ ? kIsNext : "it is the turn of others"};
}

StatusFields Drr::report(AppId app, TimePoint /*now*/) const {
  StatusFields fields;
  const auto index = std::to_underlying(app);
  if (index >= flows_.size()) return fields;
  fields.add({.name = "deficit",
              .value = static_cast<std::int64_t>(flows_[index].deficit),
              .join = StatusField::Join::sum});
  return fields;
}

}  // namespace example
